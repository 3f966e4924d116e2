import { DAY_MS } from '../../base/time.ts'
import { isOfMirror } from '../../base/domain/event-types.ts'
import { type EventTarget, isSpecific, namesOf, plainRepository, targetsOf } from '../../base/domain/image-reference.ts'
import type { Announced, NewTag } from '../../store/catalog/tags.ts'
import { createTypeFilter, parseBody } from '../../webhooks/receive/event.ts'

/** What is mirrored of the images that events name. */
interface NewsReads {
  readonly findAnnounced: (target: EventTarget) => Announced
  readonly listNewTags: (from: number, limit: number) => readonly NewTag[]
  /** Reports whether a run since a time found more new tags than are listed. */
  readonly hasUnlistedTags: (from: number) => boolean
}

/** How long new tags are known as such, milliseconds; the store keeps them as long. */
const NEW_MS = 30 * DAY_MS

/**
 * Reports whether an event of the service tells of nothing new: all that it names is mirrored, and none of it appeared in the last 30
 * days. So it is with test events, which the service sends about a tag that exists, and which nothing else tells from others. Where a
 * run found more new tags than are listed, nothing is known to be old. What mirrors tell is never old: the tags whose findings changed
 * are always mirrored. `now`: the time of ages (`timeOfAges`), as a clock that is ahead ages no tag.
 */
export function isOldNews(body: Uint8Array, reads: NewsReads, now: number): boolean {
  const { type, target: named } = parseBody(Buffer.from(body), createTypeFilter(['*'], ''))
  if (named === null || isOfMirror(type)) return false
  const targets = targetsOf(named)
  if (targets.length === 0 || !targets.every((one) => isMirrored(one, reads))) return false
  const from = now - NEW_MS
  if (reads.hasUnlistedTags(from)) return false
  const arrived = reads.listNewTags(from, Number.MAX_SAFE_INTEGER)
  return !targets.some((one) => arrived.some((tag) => isSame(one, tag)))
}

function isMirrored(target: EventTarget, { findAnnounced }: NewsReads): boolean {
  if (!isSpecific(namesOf(target))) return false
  const { listed, digestMatches } = findAnnounced(target)
  return listed && digestMatches !== false
}

/** A missing value contradicts nothing. */
function isSame(target: EventTarget, tag: NewTag): boolean {
  const names = namesOf(target)
  if (names.digest !== null && names.digest === tag.digest) return true
  const plain = (name: string | null): string | null => (name === null ? null : plainRepository(name))
  const agree = (a: string | null, b: string | null): boolean => a === null || b === null || a === b
  return agree(names.tag, tag.tag) && agree(plain(names.repository), plain(tag.repository))
}
