import { MirrorError } from '../../../base/errors.ts'
import type { Manifest } from './manifest.ts'

/**
 * The names under which a manifest counts what a bundle carries beside its state, in the order of their members, which are the
 * last ones. Programs that do not know a count ignore it, and a blob that no row names.
 */
export const CARRIED = ['trust-root', 'doubt-names', 'osv-dates'] as const

/** One of them. */
export type Carried = (typeof CARRIED)[number]

/** Returns the name of the member with what is carried; null: the bundle has none. Throws `bundle`. */
export function carriedMember({ counts, members }: Pick<Manifest, 'counts' | 'members'>, kind: Carried): string | null {
  if (counts[kind] === undefined) return null
  const fromEnd = CARRIED.slice(CARRIED.indexOf(kind)).filter((one) => counts[one] !== undefined).length
  const name = members.at(-fromEnd)?.name ?? ''
  if (/^blobs\/[\da-f]{64}\.gz$/.test(name)) return name
  throw new MirrorError('bundle', `it counts ${kind}, and has no member with them`)
}
