import { closest, distance } from 'fastest-levenshtein'

/** Returns the candidate that a mistyped word most likely means; null: none is near enough. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const best = closest(word, candidates)
  return distance(word, best) <= Math.max(1, Math.floor(word.length / 3)) ? best : null
}

/** Whether two words differ by one letter. */
export function isOneOff(one: string, other: string): boolean {
  return distance(one, other) === 1
}
