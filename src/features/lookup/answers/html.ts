import { type Cell, code, count, grouped, outside, plain, size, time, withTimes } from './cells.ts'
import {
  type Answer,
  type Facts,
  type Link,
  type OwnLink,
  type Part,
  type Table,
  type TextValue,
  type Tone,
  type Value,
  ISO_TIME,
  columnsOf,
  listOf,
  notesOf,
  type Prose,
} from './answer.ts'

/** A part of a page, by the template of its name, which escapes every text. */
export type AnswerBlock = NoticeBlock | FactsBlock | TableBlock | Prose

/** A message, with commands to copy. */
export interface NoticeBlock {
  readonly kind: 'notice'
  readonly tone: Tone
  readonly title: string
  readonly text?: string
  readonly rows?: FactsBlock['rows']
  readonly commands?: readonly string[]
  readonly links?: readonly Cell[]
}

/** Names with values. */
export interface FactsBlock {
  readonly kind: 'facts'
  readonly title?: string
  readonly rows: readonly (readonly [name: string, value: Cell | readonly Cell[]])[]
}

/** A table with a header row; `next` leads to its next page. */
export interface TableBlock {
  readonly kind: 'table'
  readonly title: string
  readonly note?: string
  /** Why rows may be missing that nothing shows; the note, or a notice, says it too. */
  readonly incomplete?: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (Cell | readonly Cell[])[])[]
  /** Shown instead of a table without rows. */
  readonly empty: string
  readonly first?: string | null
  readonly next?: string | null
}

/** What a page knows that an answer does not: the addresses. */
interface PagePlace {
  /** Unix milliseconds. */
  readonly now: number
  readonly hrefOf: (link: OwnLink) => string
  /** Returns the address of the same page, its table beginning after this number of rows. */
  readonly pageAt: (at: number) => string
  /** Returns the address of the same page, its table beginning behind this. */
  readonly pageAfter: (after: string) => string
  /** The address of the first page of its list; null or absent: this is it. */
  readonly first?: string | null
}

/** Returns an answer as blocks of a page, below its title. */
export function htmlBlocks({ parts }: Pick<Answer, 'parts'>, place: PagePlace): AnswerBlock[] {
  return parts.map((part) => blockOf(part, place))
}

const TONES = { note: 'plain', warning: 'warn' } as const satisfies Record<string, Tone>

function blockOf(part: Part, place: PagePlace): AnswerBlock {
  switch (part.kind) {
    case 'notice': {
      const { kind, level, title, text } = part
      const said = text === undefined ? {} : { text: withTimes(asSentence(text)) }
      return { kind, tone: TONES[level], title: capitalized(title), ...said }
    }
    case 'text':
      return { ...part, ...titleOf(part) }
    case 'facts':
      return { kind: 'facts', ...titleOf(part), rows: part.rows.map(([name, value]) => [name, cellsOf(value, place)]) }
    case 'table':
      return tableOf(part, place)
  }
}

function titleOf({ title }: Pick<Facts, 'title'>): { readonly title?: string } {
  return title === undefined ? {} : { title: capitalized(title) }
}

function tableOf(table: Table, place: PagePlace): AnswerBlock {
  const { rows, at, of = rows.length, about = [], incomplete } = table
  const from = at ?? 0
  const end = from + rows.length
  const nextRows = at !== undefined && end < of ? place.pageAt(end) : null
  const note = withTimes([...rangeOf(table), ...about, ...notesOf(table)].map(asSentence).join(' '))
  return {
    kind: 'table',
    title: capitalized(table.title),
    ...(note !== '' && { note }),
    ...(incomplete !== undefined && { incomplete }),
    columns: columnsOf(table).map(({ name }) => capitalized(name)),
    rows: rows.map((row) => row.map((value) => cellsOf(value, place))),
    empty: asSentence(table.empty),
    first: from > 0 ? place.pageAt(0) : firstOf(table, place),
    next: table.next === undefined ? nextRows : place.pageAfter(table.next),
  }
}

/** Only a list that is shown page by page has a first page behind which it may be. */
function firstOf({ total }: Table, { first = null }: PagePlace): string | null {
  return total === undefined ? null : first
}

/** Says which rows are shown, where they are a part of all. */
function rangeOf({ rows, at, of = rows.length }: Table): string[] {
  if (rows.length === 0 || rows.length >= of) return []
  if (at === undefined) return [`the first ${grouped(rows.length)} of ${grouped(of)}`]
  return [`${grouped(at + 1)} to ${grouped(at + rows.length)} of ${grouped(of)}`]
}

function cellsOf(values: Value | readonly Value[], place: PagePlace): Cell[] {
  return listOf(values).map((one) => cellOf(one, place))
}

function cellOf(value: Value, place: PagePlace): Cell {
  switch (value.kind) {
    case 'none':
      return plain(null)
    case 'count':
      return count(value.count)
    case 'bytes':
      return size(value.bytes)
    case 'digest':
      return { ...code(value.digest), whole: value.digest }
    case 'time': {
      const cell = time(value.at, place.now)
      const notes = [cell.note, value.note].filter((note) => note !== undefined)
      return { ...cell, ...(notes.length > 0 && { note: notes.join(', ') }) }
    }
    case 'text':
      return textCell(value, place)
  }
}

function textCell({ text, isCode, tone, note, link }: TextValue, place: PagePlace): Cell {
  if (ISO_TIME.test(text) && note === undefined && link === undefined) return time(text, place.now)
  const cell = link === undefined ? { text } : linkedCell(text, link, place)
  return {
    ...cell,
    ...(isCode && { look: 'code' }),
    ...(tone !== undefined && { tone }),
    ...(note !== undefined && { note }),
  }
}

function linkedCell(text: string, to: Link, place: PagePlace): Cell {
  return to.kind === 'web' ? outside(to.url) : { text, href: place.hrefOf(to) }
}

/** Returns words as they begin a line of a page; an address, a path or the name of a file stays as it is. */
function capitalized(words: string): string {
  return /^[a-z]+(?:[ ,;]|$)/.test(words) ? words.charAt(0).toUpperCase() + words.slice(1) : words
}

/** Returns words as a sentence of a page. */
export function asSentence(words: string): string {
  const begun = capitalized(words)
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}
