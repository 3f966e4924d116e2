import type { Steps } from '../../base/pacing.ts'
import { type Slice, elementsInSteps, membersInSteps, membersOf, skipSpace, sliceText } from '../../base/json/slices.ts'
import { type Piece, joinInSteps, STEP } from './steps.ts'
import { type FilterName, type PatchFilter, type Rows, NOWHERE, createRows, fitting, textAt } from './patch-filter.ts'
import { bareName } from '../../base/json/field-names.ts'

/** Field names for each filter, normalized, the most specific first; also with a prefixed word, and in objects of a row. */
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
/** Names that mean something else in most objects, so that a prefixed word or an object makes them another field. */
const GENERIC: ReadonlySet<string> = new Set(['name', 'package', 'release'])
/** Objects of a row that have its fields (JSON:API and others). */
const WRAPPERS: ReadonlySet<string> = new Set(['attributes', 'data', 'fields', 'item', 'properties', 'spec'])
/** Whose value the field called ecosystem has to have at least once: else it is something else that is called so. */
const ECOSYSTEM = /^(alpine|debian|ubuntu|pypi|npm|maven)$/i

/** A patch feed whose packages are rows of one list: the positions of all parts in its text. */
export interface RowIndex {
  /** The list, brackets included. */
  readonly list: Slice
  /** Numbers beside the list that count its rows. */
  readonly totals: readonly Slice[]
  /** By filter: each row, and its value (equal ends when it has none). Null: no field of the rows is about that. */
  readonly fields: Readonly<Record<FilterName, Rows | null>>
  readonly count: number
}

/** How deep in the feed the list may be: `{"result": {"rows": […]}}`. */
const MAX_DEPTH = 2

/** Whether the feed is the tree of ecosystems of the wire facts: then its keys are ecosystems, or there are none. */
export function* isTree(text: Buffer): Steps<boolean> {
  if (text[skipSpace(text, 0)] !== 0x7b) return false
  let isEmpty = true
  for (const member of membersInSteps(text, 0)) {
    yield
    if (member === undefined) continue
    if (ECOSYSTEM.test(member.name)) return true
    isEmpty = false
  }
  return isEmpty
}

/** Reads such a feed once. Null when it is of yet another shape; `too many`: it has more than `maxRows`. Yields after every few rows. */
export function* indexRows(text: Buffer, maxRows: number): Steps<RowIndex | 'too many' | null> {
  const start = skipSpace(text, 0)
  const isList = text[start] === 0x5b
  const lists = isList ? [{ start, end: text.length }] : yield* listsIn(text, start, 0)
  const [found] = lists
  if (found === undefined || lists.length > 1) return null
  const names = new Map<string, number>()
  let count = 0
  let end = found.start + 1
  for (const row of elementsInSteps(text, found.start)) {
    if (row === undefined || count % STEP === 0) yield
    if (row === undefined) continue
    if (++count > maxRows) return 'too many'
    end = row.end
    for (const { path } of fieldsIn(text, row.start)) names.set(path, (names.get(path) ?? 0) + 1)
  }
  const list = { start: found.start, end: text.indexOf(']', end) + 1 }
  if ((list.end - list.start) * 2 < text.length) return null // the content is not in this list
  const chosen = chooseFields([...names.keys()])
  const fields = yield* fieldsOf(text, list, chosen)
  const totals = isList ? [] : yield* totalsIn(text, start, String(count), 0)
  return { list, totals, fields, count }
}

/** The lists of objects in an object. */
function* listsIn(text: Buffer, at: number, depth: number): Steps<Slice[]> {
  const found: Slice[] = []
  for (const member of membersInSteps(text, at)) {
    yield
    if (member === undefined) continue
    const { value } = member
    const first = text[value.start]
    if (first === 0x7b && depth + 1 < MAX_DEPTH) found.push(...(yield* listsIn(text, value.start, depth + 1)))
    if (first === 0x5b && text[skipSpace(text, value.start + 1)] === 0x7b) found.push(value)
  }
  return found
}

/** Numbers that are the count of rows: in a narrowed answer they would be wrong. */
function* totalsIn(text: Buffer, at: number, count: string, depth: number): Steps<Slice[]> {
  const found: Slice[] = []
  for (const member of membersInSteps(text, at)) {
    yield
    if (member === undefined) continue
    const { value } = member
    if (text[value.start] === 0x7b && depth < MAX_DEPTH)
      found.push(...(yield* totalsIn(text, value.start, count, depth + 1)))
    else if (value.end - value.start === count.length && sliceText(text, value) === count) found.push(value)
  }
  return found
}

/** How deep in a row a field may be: `{"attributes": {"package": {"name": …}}}`. */
const FIELD_DEPTH = 3

/** A field of a row: the names that lead to it, with dots between them, and its value. */
interface Field {
  readonly path: string
  readonly value: Slice
}

/** Lists the fields of a row and of its objects. */
function* fieldsIn(text: Buffer, at: number, above = '', depth = 1): Generator<Field> {
  for (const { name, value } of membersOf(text, at)) {
    const path = above + name
    yield { path, value }
    if (depth < FIELD_DEPTH) yield* fieldsIn(text, value.start, `${path}.`, depth + 1)
  }
}

/** How well a field's path fits a name; null: not at all. */
function fitOf(path: string, wanted: string): 'exact' | 'suffix' | null {
  const above = path.split('.').map(bareName)
  const last = above.pop() ?? ''
  const isOwn = above.every((one) => WRAPPERS.has(one))
  if (last === wanted && (isOwn || !GENERIC.has(wanted))) return 'exact'
  if (bareName(path) === wanted) return 'exact'
  const isLoose = wanted !== 'name' && (above.length === 0 || !GENERIC.has(wanted))
  return isLoose && bareName(path).endsWith(wanted) ? 'suffix' : null
}

function chooseFields(names: readonly string[]): Record<FilterName, string | null> {
  const choose = (kind: FilterName): string | null =>
    NAMES[kind].flatMap((wanted) => {
      const exact = names.filter((name) => fitOf(name, wanted) === 'exact')
      return [...exact, ...names.filter((name) => fitOf(name, wanted) === 'suffix')]
    })[0] ?? null
  return {
    ecosystem: choose('ecosystem'),
    release: choose('release'),
    packageName: choose('packageName'),
  }
}

function* fieldsOf(text: Buffer, list: Slice, chosen: Record<FilterName, string | null>): Steps<RowIndex['fields']> {
  const rows = { ecosystem: createRows(), release: createRows(), packageName: createRows() }
  let isEcosystem = false
  for (const row of elementsInSteps(text, list.start)) {
    if (row === undefined || rows.ecosystem.count() % STEP === 0) yield
    if (row === undefined) continue
    const values = { ecosystem: NOWHERE, release: NOWHERE, packageName: NOWHERE }
    for (const { path, value } of fieldsIn(text, row.start))
      for (const kind of KINDS) if (chosen[kind] === path) values[kind] = valueOf(text, value)
    for (const kind of KINDS) rows[kind].add(row, values[kind])
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
  for (const { name, value: inner } of membersOf(text, value.start)) if (name === 'name') return inner
  return value
}

/** Filters that are asked for and that no field of the rows is about. */
export function unfiltered(index: RowIndex, filter: PatchFilter): FilterName[] {
  return KINDS.filter((kind) => filter[kind] !== null && index.fields[kind] === null)
}

/** The feed with the rows that are asked for, all else as upstream has it, but for numbers that count the rows. */
export function* filterRows(text: Buffer, index: RowIndex, filter: PatchFilter): Steps<Buffer> {
  const wanted = KINDS.flatMap((kind) => {
    const rows = index.fields[kind]
    const value = filter[kind]
    return rows === null || value === null ? [] : [{ rows, value, fits: fitting(text, kind, value) }]
  })
  const kept: Piece[] = ['[']
  let count = 0
  const [first] = wanted
  for (let row = 0; first !== undefined && row < index.count; row++) {
    if (row % STEP === 0) yield
    if (!wanted.every(({ rows, fits }) => fits(rows.name(row)))) continue
    const { start, end } = first.rows.whole(row)
    if (count++ > 0) kept.push(',')
    kept.push(text.subarray(start, end))
  }
  kept.push(']')
  return yield* replaced(text, [
    ...index.totals.map((slice) => ({ slice, by: [String(count)] })),
    { slice: index.list, by: kept },
  ])
}

function* replaced(text: Buffer, changes: readonly { slice: Slice; by: readonly Piece[] }[]): Steps<Buffer> {
  const parts: Piece[] = []
  let at = 0
  for (const { slice, by } of changes.toSorted((a, b) => a.slice.start - b.slice.start)) {
    parts.push(text.subarray(at, slice.start))
    for (const piece of by) parts.push(piece)
    at = slice.end
  }
  parts.push(text.subarray(at))
  return yield* joinInSteps(parts)
}
