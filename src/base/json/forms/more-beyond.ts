import { isError } from './error-body.ts'
import { type EnvelopePlace, MORE, TOTAL, isLink, placesOf, plainMember, truthOf } from '../list-names.ts'
import { isObject } from '../objects.ts'
import type { JsonPath } from '../slices.ts'

/**
 * Returns what in a document says that it is not the whole, as one page of several, though it was fetched as the whole; null
 * when nothing does. `items` is the position of its `entries` entries, which are not looked at.
 */
export function moreBeyond(document: unknown, items: JsonPath, entries: number): string | null {
  return onePage(document, items, entries) ?? flawOf(document, items)?.text ?? null
}

/** Returns what says that a document is one page of several; texts for people, such as the message of a commit, say nothing. */
export function onePage(document: unknown, items: JsonPath, entries: number): string | null {
  const place = around(document, items).find(({ name, value }) => speaksOfMore(name, value, entries))
  return place === undefined ? null : `it is one page of several: ${describe(place)}`
}

/** Returns how many entries the lists of a document have, or the objects in it that have no list; rather more than fewer. */
export function countListed(document: unknown): number {
  if (Array.isArray(document)) return document.length
  if (!isObject(document)) return 0
  const members = Object.values(document)
  const within = members.reduce<number>((sum, one) => sum + countListed(one), 0)
  return members.some((one) => Array.isArray(one)) ? within : Math.max(members.length, within)
}

/** What a document says itself of content that it lacks. */
export interface Flaw {
  text: string
  /** Whether a next page cannot bring what is missing: an error, a search that timed out; not a flag `partial`. */
  isLasting: boolean
}

/** Returns whether a text for people says that something is missing. */
export function saysLack(text: string): boolean {
  return CUT_NOTE.test(text)
}

/** Returns whether a header says the same, as a flag: `X-Degraded: true`. */
export function isFlawHeader(name: string, value: unknown): boolean {
  const plain = plainMember(name.replace(/^x-/, ''))
  return (truthOf(value) === true || value === '1') && (CUT.test(plain) || BROKEN.test(plain))
}

/**
 * Returns what a document says itself of content that it lacks; null when it says nothing. Its numbers and its end then prove
 * nothing.
 */
export function flawOf(document: unknown, items: JsonPath): Flaw | null {
  if (Array.isArray(document)) return flawOfList(document)
  const places = around(document, items)
  const lasting = places.find(({ name, value }) => isLastingFlaw(name, value))
  const place = lasting ?? places.find(({ name, value }) => isFlaw(name, value))
  if (place === undefined) return null
  return { text: `it says that something is missing: ${describe(place)}`, isLasting: place === lasting }
}

/** A list of which one end has no member of the other: it is about the list (`[{"id": 1}, {"has_more": true}]`), not in it. */
function flawOfList(list: readonly unknown[]): Flaw | null {
  const [first] = list
  const last = list.at(-1)
  if (!isObject(first) || !isObject(last) || Object.keys(first).some((name) => name in last)) return null
  const names = Object.keys(last).slice(0, 5).join(', ')
  return { text: `its first and its last element have no member in common (${names.slice(0, 60)})`, isLasting: true }
}

/** Returns the members around the items and beside them; within other objects, names are content. */
function around(document: unknown, items: JsonPath): EnvelopePlace[] {
  if (!isObject(document)) return []
  return placesOf(document, items).filter(({ path }) =>
    path.slice(0, -1).every((one, at) => one === items[at] || ENVELOPE.has(plainMember(String(one)))),
  )
}

function describe({ path, value }: EnvelopePlace): string {
  return `${path.join('.')} is ${JSON.stringify(value).slice(0, 60)}`
}

/** Names of objects that are around the entries or beside them (a package may be called `next`). */
const ENVELOPE: ReadonlySet<string> = new Set([
  'data',
  'result',
  'results',
  'response',
  'meta',
  'metadata',
  'info',
  'links',
  'paging',
  'pagination',
  'page',
  'pageinfo',
  'cursor',
  'cursors',
])

/** Names of flags that say that this is the last page. */
const ENDS: ReadonlySet<string> = new Set(['islast', 'last', 'islastpage', 'lastpage'])

/** Names of a number of pages. */
const PAGES: ReadonlySet<string> = new Set(['pages', 'totalpages', 'pagecount', 'lastpage'])

/** Names of what leads to the next page; `next_update` is something else. */
const NEXT =
  /^(after|next(cursor|page|pagetoken|token|url|uri|link|key|offset)?|(resume|continuation|scroll)(token|key|cursor))$/

function speaksOfMore(name: string, value: unknown, entries: number): boolean {
  if (MORE.has(name)) return value === 1 || truthOf(value) === true
  if (ENDS.has(name) && truthOf(value) === false) return true
  if (PAGES.has(name)) return Number(value) > 1
  if (TOTAL.has(name) || name === 'count') return Number(value) > entries
  if (!NEXT.test(name)) return false
  if (Array.isArray(value)) return value.some((one) => isLink(one) || typeof one === 'string')
  return isLink(value) || (Boolean(value) && typeof value !== 'object')
}

/** Names of flags that are true where something is missing; `rate_limited` and `unlimited` are about requests. */
const CUT =
  /^(?!.*(rate|unlimited)).*(partial|incomplete|capped|limited|overflow|limit(reached|exceeded|hit)|(reached|exceeded|hit)limit)|^(is)?(in)?(stale|fallback|maintenance(mode)?)$/
const BROKEN = /degraded|timedout|timeout/
/** Names of what did not answer, by its number or its names. */
const SILENT =
  /^(unreachable|unresponsive)|^failed(shard|source|region|node|part|partition|ecosystem|page|backend|request)s?$/
/** Names of what is missing, by the names of it; a number may be of anything. */
const LISTED = /^(failed|failures|missing|omitted|unavailable|not(loaded|included|available)|dropped|lost)/
/** States of an answer, and texts for people, of which something is missing. */
const STATES: ReadonlySet<string> = new Set(['status', 'state', 'result', 'outcome', 'completeness', 'mode'])
const CUT_STATE = /^(partial|incomplete|truncated|stale|fallback|maintenance)/i
const BROKEN_STATE = /^(degraded|errors?|fail(ed|ing|ure)?$|timed?[ _-]?out)/i
const STATUS = /^(http)?status(code)?$/
const NOTES = /^(warnings?|notices?|notes?|messages?)$/
const CUT_NOTE =
  /\b(truncated|incomplete|stale|outdated|degraded|omitted|(could|can) ?not be|couldn[’']t be|failed to|(is|are|was|were) missing|timed out|partial (results?|data|content|response|list)|(temporarily )?un(available|reachable)|(did|does) not (answer|respond)|not (all|every|ready)|being (re)?(built|indexed|generated)|in progress|try again)\b/i

function isLastingFlaw(name: string, value: unknown): boolean {
  if (/^errors?$/.test(name)) return isError(value)
  const truth = truthOf(value)
  if (truth !== null) return truth ? BROKEN.test(name) : /^(success|ok)$/.test(name)
  if (STATUS.test(name) && /^[45]\d\d$/.test(String(value))) return true
  return STATES.has(name) && BROKEN_STATE.test(String(value))
}

function isFlaw(name: string, value: unknown): boolean {
  if (truthOf(value) === true) return CUT.test(name)
  if (Array.isArray(value)) return value.length > 0 && (SILENT.test(name) || LISTED.test(name) || isNote(name, value))
  if (SILENT.test(name)) return Number(value) > 0
  if (STATES.has(name)) return CUT_STATE.test(String(value))
  return isNote(name, value)
}

function isNote(name: string, value: unknown): boolean {
  return NOTES.test(name) && saysLack(JSON.stringify(value))
}
