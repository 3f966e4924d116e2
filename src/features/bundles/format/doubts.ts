import { MirrorError } from '../../../base/errors.ts'
import { DOUBTS, type Doubt, type DoubtCounts } from '../../../base/domain/doubts.ts'
import { type SourceName, SOURCES } from '../../../base/domain/sources.ts'
import type { Manifest } from './manifest.ts'

/** The beginning of the names under which a manifest counts doubts, as `doubts-osv-affectedlost`: older programs ignore them. */
export const DOUBTS_COUNT = 'doubts-'

/** Returns the counts of a manifest for what the mirror that made it published although its guard doubted it. */
export function countsOfDoubts(source: SourceName, counts: DoubtCounts): Manifest['counts'] {
  const kinds = Object.entries(counts)
  return Object.fromEntries(kinds.map(([kind, put]) => [nameOf(source, kind), { put, removed: 0 }]))
}

/** Returns how many items of each kind of a source the manifests of a series count. */
export function doubtsCounted(manifests: readonly Pick<Manifest, 'counts'>[], source: SourceName): DoubtCounts {
  const found: Partial<Record<Doubt, number>> = {}
  for (const kind of Object.keys(DOUBTS) as Doubt[]) {
    const name = nameOf(source, kind)
    const count = manifests.reduce((most, { counts }) => Math.max(most, counts[name]?.put ?? 0), 0)
    if (count > 0) found[kind] = count
  }
  return found
}

function nameOf(source: SourceName, kind: string): string {
  return `${DOUBTS_COUNT}${source}-${kind.toLowerCase()}`
}

/** The first line of the member with the names. */
export const DOUBT_NAMES_HEADER = '{"kind":"patchmirror-doubt-names","format":1}'

/** Names of each kind of a source that a bundle carries at most, and characters of a name. */
export const MOST_CARRIED = { names: 20, characters: 500 }

/** A doubtful item, as a line of the member has it. */
type DoubtName = readonly [source: SourceName, kind: Doubt, name: string]

/** Reports whether a bundle carries a name: a bounded one, without control characters. */
export function isCarried(name: string): boolean {
  return name.length <= MOST_CARRIED.characters && !/\p{Cc}/u.test(name)
}

/** Parses a line; null for a kind or source that this version does not know. Throws `bundle`. */
export function parseDoubtName(value: unknown, place: string): DoubtName | null {
  const [source, kind, name] = Array.isArray(value) ? (value as unknown[]) : []
  if (typeof name !== 'string' || !isCarried(name))
    throw new MirrorError('bundle', `${place} is not the name of a doubtful item`)
  const isKnown = SOURCES.some((one) => one === source) && typeof kind === 'string' && Object.hasOwn(DOUBTS, kind)
  return isKnown ? [source as SourceName, kind as Doubt, name] : null
}
