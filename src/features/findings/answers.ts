import { namedValue, onlyValue, readLimit } from '../../server/http/request-target.ts'
import { NOT_NAMED } from '../../server/lookup/named.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { readToken, writeToken } from '../../base/json/objects.ts'
import { SINCE_FORMS, readSince, toIsoOrNull } from '../../base/time.ts'
import { type Incompleteness, requireWhole } from '../../store/catalog/completeness.ts'
import { readFindings } from '../../store/findings/database.ts'
import { changeMessage, logName, logPosition } from '../../store/findings/message.ts'
import type { FindingsReads } from '../../store/findings/reads.ts'
import { type KnownOfTags, NOT_JUDGED, notJudgedYet, whyNoTags } from '../../store/findings/words.ts'
import { type MissingOf, stateMessage, tagMessage } from './messages.ts'

/** Tags or changes on a page, and the most. */
const PAGE = 100
const MAX_PAGE = 1_000

/**
 * Answers from the findings, with what the tags were judged by. Throws `not_found` where none are made, `not_ready` before the
 * first.
 */
export function answerFindings<T extends object>(
  config: Pick<Config, 'data' | 'match' | 'views'>,
  missing: MissingOf,
  answer: (reads: FindingsReads) => T,
) {
  const off = whyNoTags(config)
  if (off !== null) throw new MirrorError('not_found', off)
  const found = readFindings(config.data.dir, (reads) => {
    const state = stateMessage(reads, missing)
    if (state === null) return null
    // Before all tags were judged once, lists and numbers would be those of a part of them.
    if (reads.readState()?.beganAt === null) throw new MirrorError('not_ready', notJudgedYet(state.counts))
    return { ...state, ...answer(reads) }
  })
  if (found !== null) return found
  throw new MirrorError('not_ready', NOT_JUDGED)
}

/** A question about the findings. */
export interface FindingsQuestion {
  readonly query: URLSearchParams
  /** Unix milliseconds. */
  readonly now: number
  /** Ids of the mirrored tags that a digest, a reference or a repository names. */
  readonly idsNamed: (text: string) => readonly string[]
  /** Why the list of tags may lack some; null or absent: it does not. */
  readonly incomplete?: Incompleteness | null
  /** Why a tag is not judged, as it is now; absent: as it was kept. */
  readonly whyNotJudged?: (id: string, refusal: string) => string
  /** Why the stored SBOM of a tag may be of an earlier image; absent: that is not asked. */
  readonly whySbomOld?: KnownOfTags['whySbomOld']
  /** When the catalog lost a tag, Unix milliseconds; null: it is not known. */
  readonly removedAt?: (id: string) => number | null
}

/** The tags in the order of their names, or the one that `tag` names. Throws `bad_request`, `not_found`. */
export function listTags(reads: FindingsReads, question: FindingsQuestion) {
  const { query, whySbomOld = () => null } = question
  const known = { withoutVex: reads.listTagsWithoutVex(), whySbomOld }
  const limit = readLimit(query, MAX_PAGE) ?? PAGE
  const named = namedValue(query, 'tag')
  if (named !== null) {
    const owner = ownerNamed(reads, question, named)
    const tag = reads.readTag(owner)
    if (tag === null)
      throw new MirrorError(
        'not_found',
        `the tag ${named} was removed: what changed in its findings before is in /-/tags/changes?tag=${encodeURIComponent(owner)}`,
      )
    return { tags: [explained(question, tagMessage(tag, known))], next: null }
  }
  requireWhole(question.incomplete ?? null, 'the findings of all tags take the whole list of tags')
  const [name, owner] = readCursor(onlyValue(query, 'after'))
  const found = reads.listTags(name, owner, limit + 1)
  const tags = found.slice(0, limit)
  const last = found.length > limit ? tags.at(-1) : undefined
  const next = last === undefined ? null : writeCursor([last.name, last.owner])
  return { tags: tags.map((one) => explained(question, tagMessage(one, known))), next }
}

type TagMessage = ReturnType<typeof tagMessage>

/** Returns a tag with the reason why it is not judged as it is now. */
export function explained({ whyNotJudged }: Pick<FindingsQuestion, 'whyNotJudged'>, tag: TagMessage): TagMessage {
  const { id, notJudgedReason: kept } = tag
  return kept === null || whyNotJudged === undefined ? tag : { ...tag, notJudgedReason: whyNotJudged(id, kept) }
}

const NO_SUCH_TAG =
  'this mirror has judged no tag of this id, name, digest or reference: a name is such as library/python:3.12'

/** Returns the id of the tag that an id, a name, a digest or a reference names, which may be gone. Throws `not_found`. */
export function ownerNamed(
  reads: FindingsReads,
  { idsNamed, incomplete = null }: Pick<FindingsQuestion, 'idsNamed' | 'incomplete'>,
  text: string,
): string {
  if (reads.readTag(text) !== null || reads.listLogOf(text, 1).length > 0) return text
  const named = reads.listTagsNamed(text).map(({ owner }) => owner)
  const present = named.length > 0 ? named : idsNamed(text)
  const ids = present.length > 0 ? present : reads.listOwnersLogged(text)
  const [id] = ids
  if (id === undefined) {
    requireWhole(incomplete, `${NO_SUCH_TAG}; ${NOT_NAMED}`)
    throw new MirrorError('not_found', NO_SUCH_TAG)
  }
  if (ids.length === 1) return id
  throw new MirrorError(
    'not_found',
    `several tags are named so: ask for one of their ids, such as ${ids.slice(0, 2).join(' or ')}`,
  )
}

/** The changes after a position or since a time, the oldest first, of all tags or one. Throws `bad_request`, `not_found`. */
export function listChanges(reads: FindingsReads, question: FindingsQuestion) {
  const { query, now } = question
  const limit = readLimit(query, MAX_PAGE) ?? PAGE
  const named = namedValue(query, 'tag')
  const owner = named === null ? null : ownerNamed(reads, question, named)
  const { after, complete } = placeOf(reads, query, now)
  const found = reads.listLog(after, limit + 1, owner)
  const changes = found.slice(0, limit)
  const last = found.length > limit ? changes.at(-1)?.seq : undefined
  return {
    ...(owner !== null && { tag: tagAsked(reads, question, owner) }),
    complete,
    knownSince: toIsoOrNull(knownSince(reads)),
    changes: changes.map(changeMessage),
    next: last === undefined ? null : logPosition(reads, last),
    position: logPosition(reads, last ?? Math.max(after, reads.lastLog())),
  }
}

/** The tag that changes are listed of, which may be removed. */
function tagAsked(reads: FindingsReads, { removedAt }: Pick<FindingsQuestion, 'removedAt'>, id: string) {
  const tag = reads.readTag(id)
  if (tag !== null) return { id, name: tag.name, removed: false, removedAt: null }
  const name = reads.listLogOf(id, 1)[0]?.name ?? id
  return { id, name, removed: true, removedAt: toIsoOrNull(removedAt?.(id) ?? null) }
}

/** The time since which the log has every change (Unix milliseconds); null until all tags were judged once. */
function knownSince(reads: FindingsReads): number | null {
  const [oldest] = reads.listLog(0, 1, null)
  // The oldest that is kept after others were forgotten is from before the time for which changes are kept.
  return oldest === undefined || oldest.seq === 1 ? (reads.readState()?.beganAt ?? null) : oldest.at + 1
}

/**
 * Returns the number behind which changes are shown; `complete`: the log has every change since what is asked for. Throws
 * `bad_request`.
 */
function placeOf(reads: FindingsReads, query: URLSearchParams, now: number) {
  const after = onlyValue(query, 'after')
  const since = namedValue(query, 'since')
  if (after !== null && since !== null)
    throw new MirrorError('bad_request', 'after=… and since=… exclude each other: both say where the list begins')
  const beginning = (reads.firstLog() ?? reads.lastLog() + 1) - 1
  if (after !== null) {
    const [, name, seq] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(after) ?? []
    if (name === undefined) throw new MirrorError('bad_request', 'after=… is not the next or position of an answer')
    const at = Number(seq)
    const complete = name === logName(reads) && at >= beginning && at <= reads.lastLog()
    return { after: complete ? at : beginning, complete }
  }
  const known = knownSince(reads)
  if (since === null) return { after: beginning, complete: beginning === 0 && known !== null }
  const at = readSince(since, now)
  if (at === null) throw new MirrorError('bad_request', `since=… is none of: ${SINCE_FORMS}`)
  if (at > now) throw new MirrorError('bad_request', `since=… is in the future: ${since}`)
  const from = (reads.findLogSince(at) ?? reads.lastLog() + 1) - 1
  return { after: from, complete: known !== null && at >= known }
}

function writeCursor(place: readonly [name: string, owner: string]): string {
  return writeToken(place)
}

function readCursor(text: string | null): readonly [name: string, owner: string] {
  if (text === null || text === '') return ['', '']
  const [name, owner] = readToken(text)
  if (typeof name === 'string' && typeof owner === 'string') return [name, owner]
  throw new MirrorError('bad_request', 'after=… is not the next of a page before')
}
