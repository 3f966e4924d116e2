import { onlyValue, readLimit } from '../api/http/request-target.ts'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../core/errors.ts'
import { SINCE_FORMS, readSince, toIso } from '../core/time.ts'
import { readFindings } from '../store/findings/database.ts'
import { changeMessage, logName, logPosition } from '../store/findings/message.ts'
import type { FindingsReads, TagFindings } from '../store/findings/reads.ts'
import { NOT_JUDGED, whyNoTags } from '../store/findings/words.ts'
import { stateMessage, tagMessage } from './messages.ts'

/** Tags or changes on a page, and the most. */
const PAGE = 100
const MAX_PAGE = 1_000

/**
 * Answers from the findings, with what the tags were judged by. Throws `not_found` where none are made, `not_ready` before the
 * first.
 */
export function answerFindings<T extends object>(
  config: Pick<Config, 'data' | 'match' | 'views'>,
  answer: (reads: FindingsReads) => T,
) {
  const off = whyNoTags(config)
  if (off !== null) throw new MirrorError('not_found', off)
  const found = readFindings(config.data.dir, (reads) => {
    const state = stateMessage(reads)
    return state === null ? null : { ...state, ...answer(reads) }
  })
  if (found !== null) return found
  throw new MirrorError('not_ready', NOT_JUDGED)
}

/** The tags in the order of their names, or the one that an id or a name is of. Throws `bad_request`, `not_found`. */
export function listTags(reads: FindingsReads, query: URLSearchParams) {
  const limit = readLimit(query, MAX_PAGE) ?? PAGE
  const named = onlyValue(query, 'tag')
  if (named !== null) return { tags: [tagMessage(readTagNamed(reads, named))], next: null }
  const [name, owner] = readCursor(onlyValue(query, 'after'))
  const found = reads.listTags(name, owner, limit + 1)
  const tags = found.slice(0, limit)
  const last = found.length > limit ? tags.at(-1) : undefined
  const next = last === undefined ? null : writeCursor([last.name, last.owner])
  return { tags: tags.map(tagMessage), next }
}

function readTagNamed(reads: FindingsReads, text: string): TagFindings {
  const own = reads.readTag(text)
  const [tag, another] = own === null ? reads.listTagsNamed(text) : [own]
  if (tag === undefined)
    throw new MirrorError('not_found', 'this mirror has no tag of this id or name, such as library/python:3.12') // prettier-ignore
  if (another === undefined) return tag
  throw new MirrorError('not_found', `several tags have this name: ask for an id, such as ${tag.owner}`) // prettier-ignore
}

/** The changes after a position or since a time, the oldest first. Throws `bad_request`. */
export function listChanges(reads: FindingsReads, query: URLSearchParams, now: number) {
  const limit = readLimit(query, MAX_PAGE) ?? PAGE
  const { after, complete } = placeOf(reads, query, now)
  const found = reads.listLog(after, limit + 1)
  const changes = found.slice(0, limit)
  const last = changes.at(-1)?.seq ?? Math.max(after, reads.lastLog())
  const position = logPosition(reads, last)
  return {
    complete,
    changes: changes.map(changeMessage),
    next: found.length > limit ? position : null,
    position,
  }
}

/**
 * Returns the number behind which changes are shown; `complete`: no change since what is asked for was forgotten, and the
 * log did not begin again since. Throws `bad_request`.
 */
function placeOf(reads: FindingsReads, query: URLSearchParams, now: number) {
  const [after, since] = [onlyValue(query, 'after'), onlyValue(query, 'since')]
  const beginning = (reads.firstLog() ?? reads.lastLog() + 1) - 1
  if (after !== null) {
    const [, name, seq] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(after) ?? []
    if (name === undefined)
      throw new MirrorError('bad_request', 'after=… is not the next or position of an answer')
    const at = Number(seq)
    const complete = name === logName(reads) && at >= beginning && at <= reads.lastLog()
    return { after: complete ? at : beginning, complete }
  }
  if (since === null) return { after: beginning, complete: beginning === 0 }
  const at = readSince(since, now)
  if (at === null) throw new MirrorError('bad_request', `since=… is none of: ${SINCE_FORMS}`)
  if (at > now) throw new MirrorError('bad_request', `since=… is in the future: ${toIso(at)}`)
  const from = (reads.findLogSince(at) ?? reads.lastLog() + 1) - 1
  // The oldest that is kept is from before the time, and with it all that was forgotten; else these may be as new.
  return { after: from, complete: beginning === 0 || from > beginning }
}

function writeCursor(place: readonly [name: string, owner: string]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

function readCursor(text: string | null): readonly [name: string, owner: string] {
  if (text === null || text === '') return ['', '']
  try {
    const place: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    const [name, owner] = Array.isArray(place) ? (place as unknown[]) : []
    if (typeof name === 'string' && typeof owner === 'string') return [name, owner]
  } catch {
    // no cursor of this mirror
  }
  throw new MirrorError('bad_request', 'after=… is not the next of a page before')
}
