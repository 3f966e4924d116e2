import { type Fields, isObject } from '../objects.ts'
import { describeSign, maySayMore, saysMore, signsOfPage } from '../list-signs.ts'
import { moreBeyond } from './more-beyond.ts'
import { bareName } from '../field-names.ts'

/** An entry of an index: the id of a record and its stamp; the stamp is empty where the index gives none. */
export interface FormEntry {
  readonly id: string
  readonly modified: string
}

/** An index as it was read, or why it must not be used; null: this is not an index. */
type Read = readonly FormEntry[] | { readonly refused: string } | null

/** The same with what beside the entries may say that there are more; `doubt` null: nothing. */
type ReadIndex =
  { readonly entries: readonly FormEntry[]; readonly doubt: string | null } | { readonly refused: string } | null

/**
 * Reads an index of records in another form than `[{"id", "modified"}]`: ids, pairs of id and stamp, objects with
 * other names, a map by id, either of them within objects (`{"data": […]}`), and JSON Lines. The contract specifies
 * none. Null when no ids of records are found; `refused` when it is one page of several, or some of it is not understood.
 */
export function readIndexForm(text: string): ReadIndex {
  const value = parseText(text)
  const doubts: string[] = []
  const entries = readValue(value, doubts)
  return entries === null || 'refused' in entries ? entries : { entries, doubt: doubts[0] ?? null }
}

function readValue(value: unknown, doubts: string[]): Read {
  if (Array.isArray(value)) return readList(value)
  if (!isObject(value)) return null
  return readMap(value, doubts) ?? readEnvelope(value, doubts) ?? readSingle(value)
}

/** Parses JSON or JSON Lines (then an array of the lines); undefined when it is neither. */
function parseText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    // It may have a value in each line.
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  try {
    return lines.length > 1 ? lines.map((line) => JSON.parse(line) as unknown) : undefined
  } catch {
    return undefined
  }
}

/** Texts that may be an id with a database's prefix and a number, as those of nearly all records. */
const ID = /^[a-z][a-z0-9_.]*-.*\d/i

/** Whether at least half of some texts have the form of an id; a few records have ids of any form. */
function areIds(texts: readonly string[]): boolean {
  const found = texts.filter((text) => ID.test(text)).length
  return found > 0 && found * 2 >= texts.length
}

/** Reads `{"CVE-2026-1": "2026-01-01", …}` and `{"CVE-2026-1": {"modified": …}, …}`. */
function readMap(map: Fields, doubts: string[]): Read {
  if (!areIds(Object.keys(map))) return null
  const others = Object.entries(map).filter(([name]) => !ID.test(name))
  noteSigns(Object.fromEntries(others), Object.keys(map).length, doubts)
  return Object.entries(map).map(([id, value]) => ({ id: idIn(id), modified: stampIn(value) }))
}

const DEPTH = 3

/** Reads the lists and maps within an object, such as one for each ecosystem. */
function readEnvelope(envelope: Fields, doubts: string[], depth = 1): Read {
  const found: FormEntry[] = []
  const places = new Set<string>()
  for (const [name, value] of Object.entries(envelope)) {
    const inner = readInner(value, doubts, depth)
    if (inner === null) continue
    if ('refused' in inner) return inner
    places.add(name)
    for (const entry of inner) found.push(entry)
  }
  if (places.size === 0) return null
  const rest = Object.fromEntries(Object.entries(envelope).filter(([name]) => !places.has(name)))
  const more = moreBeyond(rest, [], found.length)
  if (more !== null) return { refused: more }
  noteSigns(rest, found.length, doubts)
  return found
}

/** Notes what beside the entries may say that there are more, as on a page of a list: its names are less certain. */
function noteSigns(rest: Fields, entries: number, doubts: string[]): void {
  const read = { items: entries, shown: entries, pages: 1 }
  const found = signsOfPage(rest, []).filter((sign) => saysMore(sign, read, false) || maySayMore(sign, Infinity))
  doubts.push(...found.map(describeSign))
}

function readInner(value: unknown, doubts: string[], depth: number): Read {
  if (Array.isArray(value)) return readList(value)
  if (!isObject(value)) return null
  return readMap(value, doubts) ?? (depth < DEPTH ? readEnvelope(value, doubts, depth + 1) : null)
}

/** Reads a list of ids, of pairs, or of objects. */
function readList(list: readonly unknown[]): Read {
  const [first] = list
  const entryOf = isObject(first) ? entryReader(list) : readItem
  if (entryOf === null) return null
  const entries: FormEntry[] = []
  let unread = 0
  for (const item of list) {
    const entry = entryOf(item)
    if (entry === null) unread++
    else entries.push(entry)
  }
  if (!areIds(entries.map(({ id }) => id))) return null
  const few = `${unread} of ${list.length} entries have no id`
  return unread === 0 ? entries : { refused: few }
}

/** Reads `"CVE-2026-1"` and `["CVE-2026-1", "2026-01-01"]`. */
function readItem(item: unknown): FormEntry | null {
  if (typeof item === 'string') return { id: idIn(item), modified: '' }
  if (!Array.isArray(item)) return null
  const [id, stamp] = item as unknown[]
  return typeof id === 'string' ? { id: idIn(id), modified: stampIn(stamp) } : null
}

/** Names of members that may contain the id, in this order; without punctuation, in small letters. */
const ID_NAMES = [
  'id',
  'osvid',
  'recordid',
  'vulnid',
  'vulnerabilityid',
  'advisoryid',
  'identifier',
  'cveid',
  'cve',
  'vulnerability',
  'advisory',
  'name',
  'key',
  'path',
  'file',
  'filename',
  'url',
  'href',
]

/** Returns a reader of a list's objects: by the first name under which they have ids; null when there is none. */
function entryReader(list: readonly unknown[]): ((item: unknown) => FormEntry | null) | null {
  const sample = list.slice(0, SAMPLE).filter(isObject)
  const name = ID_NAMES.find((one) => areIds(sample.map((item) => idIn(textOf(item, one)))))
  if (name === undefined) return null
  return (item) => {
    const id = isObject(item) ? textOf(item, name) : ''
    return id === '' ? null : { id: idIn(id), modified: stampIn(item) }
  }
}

/** Objects of a list whose names are looked at. */
const SAMPLE = 100

/** Members that a single entry may have, far more than real ones. */
const MOST_MEMBERS = 1000

/** Reads a document that is one entry. */
function readSingle(value: Fields): Read {
  if (Object.keys(value).length > MOST_MEMBERS) return null
  const entry = entryReader([value])?.(value) ?? null
  return entry === null ? null : [entry]
}

/** Returns the text of a member, looked for one level down too (`{"attributes": {"cve_id": …}}`); empty when there is none. */
function textOf(item: Fields, name: string): string {
  const own = memberOf(item, name)
  if (typeof own === 'string') return own
  const inner = Object.values(item).filter(isObject)
  return inner.map((one) => memberOf(one, name)).find((one) => typeof one === 'string') ?? ''
}

function memberOf(item: Fields, name: string): unknown {
  const found = Object.keys(item).find((key) => bareName(key) === name)
  return found === undefined ? undefined : item[found]
}

/** Returns the id in a text that may be the path or URL of a record. */
function idIn(text: string): string {
  const found = /^(?:.*\/)?([^/?#]+)\.json(?:[?#].*)?$/.exec(text)?.[1]
  try {
    return found === undefined ? text : decodeURIComponent(found)
  } catch {
    return text
  }
}

/** Names of the date of a record, which alone is compared with the record's own `modified`. */
const STAMP_NAMES = ['modified', 'lastmodified', 'modifiedat', 'modifieddate', 'datemodified']

/** Returns the stamp of an entry: a date as text, or under the name of one; empty when there is none. */
function stampIn(value: unknown): string {
  if (typeof value === 'string') return isDate(value) ? value : ''
  if (!isObject(value)) return ''
  const found = STAMP_NAMES.map((name) => textOf(value, name)).find((text) => text !== '')
  return found !== undefined && isDate(found) ? found : ''
}

function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))
}
