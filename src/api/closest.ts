import { distance } from 'fastest-levenshtein'

/**
 * The path among `paths` that looks most like the one asked for, null when none is within `limit` letters; case and
 * doubled slashes do not count.
 */
export function closestPath(
  asked: string,
  paths: readonly string[],
  limit = Number.POSITIVE_INFINITY,
): string | null {
  const wanted = plain(asked)
  let best: string | null = null
  let least = limit
  for (const path of paths) {
    const steps = distance(wanted, plain(path))
    if (steps > least || (steps === least && best !== null)) continue
    best = path
    least = steps
  }
  return best
}

/** Cut to a length that keeps the comparison cheap whatever is asked for. */
function plain(path: string): string {
  return path.slice(0, 256).toLowerCase().replace(/\/+/g, '/')
}

/** True when two paths differ only in case or slashes. */
export function sameButForm(one: string, other: string): boolean {
  return plain(one).replace(/\/$/, '') === plain(other).replace(/\/$/, '')
}
