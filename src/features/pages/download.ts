import type { Cell } from '../lookup/answers/cells.ts'
import type { TableBlock } from '../lookup/answers/html.ts'
import type { PageView } from './page.ts'

/** The forms in which the rows of a list can be downloaded. */
export const FORMATS = ['csv', 'json'] as const
type Format = (typeof FORMATS)[number]

/** Rows of a download, and how long its pages may take: the thread makes those of all clients. */
const MOST = 10_000
const MOST_MS = 2000

/** The parameters that say where a page of a list begins. */
const POSITIONS = ['after', 'before', 'at']

/** A downloaded list. */
export interface Download {
  readonly type: string
  readonly text: string
  /** The name of the file; it says so where rows are left out, or may be missing. */
  readonly file: string
}

/** Returns a query without what is special to a page of the list, or to a download of it. */
export function queryOfList(query: string): URLSearchParams {
  const all = new URLSearchParams(query)
  for (const name of [...POSITIONS, 'format']) all.delete(name)
  return all
}

/**
 * Returns all rows of a list, page by page as its pages have them. `load`: makes the page with a query. A page that has no rows to
 * show, because something is wrong, is returned as it is.
 */
export function downloadOf(
  format: Format,
  name: string,
  query: string,
  load: (query: string) => PageView,
): Download | PageView {
  const ends = Date.now() + MOST_MS
  const first = load(queryOfList(query).toString())
  const table = listIn(first)
  if ((first.status ?? 200) !== 200 || table === null) return first
  const { columns } = table
  const rows = [...table.rows]
  let next = table.next ?? null
  while (next !== null && rows.length < MOST && Date.now() < ends) {
    const [, further = ''] = next.split('?')
    const more = listIn(load(further))
    if (more === null || more.next === next) break
    rows.push(...more.rows)
    next = more.next ?? null
  }
  const { incomplete = null } = table
  const cut = next === null ? '' : `-first-${rows.length}-rows`
  const file = `${name}${cut}${incomplete === null ? '' : '-incomplete'}.${format}`
  if (format === 'csv') return { type: 'text/csv', text: csvOf(columns, rows), file }
  return {
    type: 'application/json',
    text: JSON.stringify({
      complete: next === null && incomplete === null,
      incomplete,
      rows: objectsOf(columns, rows),
    }),
    file,
  }
}

/** Returns the list that a page is about: its last table. */
export function listIn({ blocks }: PageView): TableBlock | null {
  return blocks.findLast((block) => block.kind === 'table') ?? null
}

type Row = TableBlock['rows'][number]

function objectsOf(columns: readonly string[], rows: readonly Row[]): object[] {
  return rows.map((row) => Object.fromEntries(row.map((cells, at) => [columns[at] ?? '', valueOf(cells)])))
}

function valueOf(cells: Row[number]): unknown {
  const values = [cells].flat().flatMap((cell) => valueOfCell(cell) ?? [])
  return values.length > 1 ? values : (values[0] ?? null)
}

/** Returns what a cell says, for a program: a number, a date in ISO 8601, or a text; null: nothing. */
function valueOfCell({ text, whole, instant, look, note }: Cell): string | number | null {
  if (instant !== undefined) return instant
  const digits = text.replaceAll('\u202f', '')
  if (look === 'number' && /^\d{1,15}$/.test(digits)) return Number(digits)
  const said = whole ?? (text === '–' ? '' : text)
  const full = note === undefined ? said : `${said} (${note})`.trim()
  return full === '' ? null : full
}

function csvOf(columns: readonly string[], rows: readonly Row[]): string {
  const lines = [columns.map(quoted), ...rows.map((row) => row.map((cells) => fieldOf(valueOf(cells))))]
  return lines.map((fields) => `${fields.join(',')}\r\n`).join('')
}

function fieldOf(value: unknown): string {
  if (typeof value === 'number') return String(value)
  const text = Array.isArray(value) ? value.join('; ') : value
  return typeof text === 'string' ? quoted(text) : ''
}

/** Returns a text as a field; a spreadsheet shows one that begins as a formula as text, behind an apostrophe. */
function quoted(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}

/** How a cell begins that a spreadsheet may run, also in the wide forms of these characters. */
const FORMULA = /^[\s\0]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/
