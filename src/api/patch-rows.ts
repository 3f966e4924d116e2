import { type Slice, elementsOf, membersOf, skipSpace, sliceText } from '../json/slices.ts'
import type { PatchFilter } from './patch-filter.ts'
import { type Rows, createRows } from './slice-rows.ts'
import { STEP, type Steps } from './steps.ts'

/** A filter of the patch feed. */
export type FilterName = keyof PatchFilter

/** Names of fields that a filter may be about, in plain form, the surest first; with or without a word before them. */
const NAMES: Readonly<Record<FilterName, readonly string[]>> = {
  ecosystem: ['ecosystem', 'distro', 'distribution'],
  release: [
    'osdistromajor',
    'osdistroversion',
    'osdistrorelease',
    'distroversion',
    'distrorelease',
    'osversion',
    'release',
  ],
  packageName: [
    'packagesrcname',
    'sourcepackage',
    'srcname',
    'sourcename',
    'packagename',
    'package',
    'pkgname',
    'name',
  ],
}
const KINDS = Object.keys(NAMES) as readonly FilterName[]
/** Whose value the field called ecosystem has to have at least once: else it is something else that is called so. */
const ECOSYSTEM = /^(alpine|debian|ubuntu|pypi|npm|maven)$/i

/** A patch feed whose packages are rows of one list: where everything lies in its text. */
export interface RowIndex {
  /** The list, brackets included. */
  readonly list: Slice
  /** Numbers beside the list that say how many rows it has. */
  readonly totals: readonly Slice[]
  /** By filter: each row, and its value (equal ends when it has none). Null: no field of the rows is about that. */
  readonly fields: Readonly<Record<FilterName, Rows | null>>
  readonly count: number
}

/** How deep in the feed the list may be: `{"result": {"rows": […]}}`. */
const MAX_DEPTH = 2

/** Whether the feed is the tree of ecosystems of the wire facts: then its keys are ecosystems, or there are none. */
export function isTree(text: Buffer): boolean {
  if (text[skipSpace(text, 0)] !== 0x7b) return false
  let isEmpty = true
  for (const { name } of membersOf(text, 0)) {
    if (ECOSYSTEM.test(name)) return true
    isEmpty = false
  }
  return isEmpty
}

/** Reads such a feed once. Null when it is of yet another shape; `too many`: it has more than `maxRows`. Yields after every few rows. */
export function* indexRows(text: Buffer, maxRows: number): Steps<RowIndex | 'too many' | null> {
  const start = skipSpace(text, 0)
  const lists = text[start] === 0x5b ? [{ start, end: text.length }] : listsIn(text, start, 0)
  const [found] = lists
  if (found === undefined || lists.length > 1) return null
  const names = new Map<string, number>()
  let count = 0
  let end = found.start + 1
  for (const row of elementsOf(text, found.start)) {
    if (++count > maxRows) return 'too many'
    end = row.end
    for (const { name } of membersOf(text, row.start)) names.set(name, (names.get(name) ?? 0) + 1)
    if (count % STEP === 0) yield
  }
  const list = { start: found.start, end: text.indexOf(']', end) + 1 }
  const chosen = chooseFields([...names.keys()])
  const fields = yield* fieldsOf(text, list, chosen)
  const totals = start === found.start ? [] : totalsIn(text, start, String(count), 0)
  return { list, totals, fields, count }
}

/** The lists of objects in an object. */
function listsIn(text: Buffer, at: number, depth: number): Slice[] {
  const found: Slice[] = []
  for (const { value } of membersOf(text, at)) {
    const first = text[value.start]
    if (first === 0x7b && depth + 1 < MAX_DEPTH)
      found.push(...listsIn(text, value.start, depth + 1))
    const [row] = first === 0x5b ? elementsOf(text, value.start) : [] // the pattern ends the walk
    if (row !== undefined && text[row.start] === 0x7b) found.push(value)
  }
  return found
}

/** Numbers that are the count of rows: in a narrowed answer they would be wrong. */
function totalsIn(text: Buffer, at: number, count: string, depth: number): Slice[] {
  return [...membersOf(text, at)].flatMap(({ value }) => {
    if (text[value.start] === 0x7b && depth < MAX_DEPTH)
      return totalsIn(text, value.start, count, depth + 1)
    return value.end - value.start === count.length && sliceText(text, value) === count
      ? [value]
      : []
  })
}

function chooseFields(names: readonly string[]): Record<FilterName, string | null> {
  const choose = (kind: FilterName): string | null =>
    NAMES[kind].flatMap((wanted) => {
      const exact = names.filter((name) => plain(name) === wanted)
      return [...exact, ...names.filter((name) => plain(name).endsWith(wanted))]
    })[0] ?? null
  return {
    ecosystem: choose('ecosystem'),
    release: choose('release'),
    packageName: choose('packageName'),
  }
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

const NONE: Slice = { start: 0, end: 0 }

function* fieldsOf(
  text: Buffer,
  list: Slice,
  chosen: Record<FilterName, string | null>,
): Steps<RowIndex['fields']> {
  const rows = { ecosystem: createRows(), release: createRows(), packageName: createRows() }
  let isEcosystem = false
  for (const row of elementsOf(text, list.start)) {
    const values = { ecosystem: NONE, release: NONE, packageName: NONE }
    for (const { name, value } of membersOf(text, row.start))
      for (const kind of KINDS) if (chosen[kind] === name) values[kind] = valueOf(text, value)
    for (const kind of KINDS) rows[kind].add(row, values[kind])
    if (rows.ecosystem.count() % STEP === 0) yield
    isEcosystem ||= ECOSYSTEM.test(textAt(text, values.ecosystem))
  }
  return {
    ecosystem: isEcosystem ? rows.ecosystem : null,
    release: chosen.release === null ? null : rows.release,
    packageName: chosen.packageName === null ? null : rows.packageName,
  }
}

/** A field's value; of an object (`package: {"name": …}`) its name. */
function valueOf(text: Buffer, value: Slice): Slice {
  for (const { name, value: inner } of membersOf(text, value.start))
    if (name === 'name') return inner
  return value
}

/** The value of a slice as text: of a string its content, of anything else what is written. */
function textAt(text: Buffer, slice: Slice): string {
  const literal = sliceText(text, slice)
  return literal.startsWith('"') ? String(JSON.parse(literal)) : literal
}

/** Filters that are asked for and that no field of the rows is about. */
export function unfiltered(index: RowIndex, filter: PatchFilter): FilterName[] {
  return KINDS.filter((kind) => filter[kind] !== null && index.fields[kind] === null)
}

/** The feed with the rows that are asked for, all else as upstream has it, but for numbers that count the rows. */
export function filterRows(text: Buffer, index: RowIndex, filter: PatchFilter): Buffer {
  const wanted = KINDS.flatMap((kind) => {
    const [rows, value] = [index.fields[kind], filter[kind]]
    return rows === null || value === null
      ? []
      : [{ rows, value, fits: fitting(text, kind, value) }]
  })
  const kept: Buffer[] = []
  const [first] = wanted
  for (let row = 0; first !== undefined && row < index.count; row++) {
    if (!wanted.every(({ rows, fits }) => fits(rows.name(row)))) continue
    const { start, end } = first.rows.whole(row)
    kept.push(...(kept.length > 0 ? [COMMA] : []), text.subarray(start, end))
  }
  const count = Buffer.from(String((kept.length + 1) >> 1))
  const list = Buffer.concat([OPEN, ...kept, CLOSE])
  return replaced(text, [
    ...index.totals.map((slice) => ({ slice, by: count })),
    { slice: index.list, by: list },
  ])
}

const [OPEN, COMMA, CLOSE] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]

/** Whether a value is the one asked for; ecosystems in any case of letters. Texts are decoded only where they may be it. */
function fitting(text: Buffer, kind: FilterName, value: string): (slice: Slice) => boolean {
  const exact = Buffer.from(JSON.stringify(value))
  return (slice) => {
    const length = slice.end - slice.start
    if (length === exact.length && exact.compare(text, slice.start, slice.end) === 0) return true
    if (length === 0) return false
    if (kind === 'ecosystem') return textAt(text, slice).toLowerCase() === value
    const quoted = text[slice.start] === 0x22
    return !(quoted && length <= exact.length) && textAt(text, slice) === value
  }
}

function replaced(text: Buffer, changes: readonly { slice: Slice; by: Buffer }[]): Buffer {
  const parts: Buffer[] = []
  let at = 0
  for (const { slice, by } of [...changes].sort((a, b) => a.slice.start - b.slice.start)) {
    parts.push(text.subarray(at, slice.start), by)
    at = slice.end
  }
  return Buffer.concat([...parts, text.subarray(at)])
}
