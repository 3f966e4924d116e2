import { distance } from 'fastest-levenshtein'

/** Letters by which a path may miss another and still be taken for it. */
export const TYPO = 3

/**
 * The path among `paths` that looks most like the one asked for, null when none is within `limit` letters: a path that is
 * no slip of the pen is no help. Case, doubled slashes and what stands for a parameter (`{id}`) do not count.
 */
export function closestPath(asked: string, paths: readonly string[], limit = TYPO): string | null {
  const wanted = plain(asked)
  let best: string | null = null
  let least = limit
  for (const path of paths) {
    const steps = distance(wanted, plain(filledIn(path, asked)))
    if (steps > least || (steps === least && best !== null)) continue
    best = path
    least = steps
  }
  return best
}

/** A path whose parameters are those of the path asked for, where it has as many segments. */
function filledIn(path: string, asked: string): string {
  if (!path.includes('{')) return path
  const given = asked.slice(0, COMPARED).split('/')
  const segments = path.split('/')
  if (segments.length !== given.length) return path
  return segments.map((one, at) => (one.startsWith('{') ? (given[at] ?? one) : one)).join('/')
}

const COMPARED = 256

/** Cut to a length that keeps the comparison cheap whatever is asked for. */
function plain(path: string): string {
  return path.slice(0, COMPARED).toLowerCase().replace(/\/+/g, '/')
}

/** True when two paths differ only in case or slashes. */
export function sameButForm(one: string, other: string): boolean {
  return plain(one).replace(/\/$/, '') === plain(other).replace(/\/$/, '')
}
