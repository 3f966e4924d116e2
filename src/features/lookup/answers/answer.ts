import type { SourceName } from '../../../base/domain/sources.ts'
import { textOfJson } from '../../../base/json/objects.ts'
import { clip } from '../../../base/text.ts'

/**
 * An answer for people, made once by the module that knows it; `terminal.ts` and `html.ts` print it. Its texts are data: a printer
 * takes care of markup and escape sequences. Its own words begin with a small letter and have no full stop, as a terminal shows
 * them; a page makes sentences of them.
 */
export interface Answer {
  readonly title: string
  readonly parts: readonly Part[]
}

/** A part of an answer. */
export type Part = Notice | Facts | Table | Prose

/** What is to be known before the rest is read. */
interface Notice {
  readonly kind: 'notice'
  readonly level: 'note' | 'warning'
  readonly title: string
  readonly text?: string
}

/** Names with values. */
export interface Facts {
  readonly kind: 'facts'
  /** For a page: in the terminal the names say enough. */
  readonly title?: string
  readonly rows: readonly Fact[]
}

/** A name with its value, or several values. */
export type Fact = readonly [name: string, value: Value | readonly Value[]]

/** Rows under a head, the most important column first. */
export interface Table {
  readonly kind: 'table'
  /** For a page: in the terminal the head says enough. */
  readonly title: string
  readonly notes?: readonly string[]
  /** Why rows may be missing that nothing shows. */
  readonly incomplete?: string
  readonly columns: readonly (string | Column)[]
  readonly rows: readonly (readonly (Value | readonly Value[])[])[]
  /** Number of all rows, where `rows` may be a part of them. */
  readonly of?: number
  /** Number of rows before these, where a page can begin at any row. */
  readonly at?: number
  /** Where further rows begin, of which the number is not known. */
  readonly next?: string
  /** The number of all rows of a list that is shown page by page; null: it is not known. */
  readonly total?: number | null
  /** For a page: in the terminal the head says enough. */
  readonly about?: readonly string[]
  /** For a terminal: how to see more rows; a page leads there. */
  readonly more?: string
  /** Said instead of a table without rows. */
  readonly empty: string
}

/** Returns what is said of a table beside its rows, in both forms. */
export function notesOf({ notes = [], incomplete }: Pick<Table, 'notes' | 'incomplete'>): readonly string[] {
  return incomplete === undefined ? notes : [...notes, incomplete]
}

/** A column of a table: its name, and how a terminal shows it. */
export interface Column {
  readonly name: string
  /** Several values are parts of one text. */
  readonly isPhrase?: true
  /** A terminal shows each of its values on a line below the row, and no head. */
  readonly isBelow?: true
  /** Only a page has room for it. */
  readonly isDetail?: true
}

/** A longer text; a page shows its line breaks. */
export interface Prose {
  readonly kind: 'text'
  readonly title?: string
  readonly text: string
}

/** How good the news are. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain'

/** A value: a printer chooses how a time or a size looks, and whether a link can be followed. */
export type Value = TextValue | TimeValue | BytesValue | CountValue | DigestValue | NoValue

/** A text, an id or a name. */
export interface TextValue {
  readonly kind: 'text'
  readonly text: string
  /** An id, a path or a digest. */
  readonly isCode?: true
  readonly tone?: Tone
  readonly note?: string
  readonly link?: Link
}

interface TimeValue {
  readonly kind: 'time'
  /** Unix milliseconds, or as upstream writes it. */
  readonly at: number | string
  /** A terminal shows the day alone. */
  readonly isDay?: true
  readonly note?: string
}

interface BytesValue {
  readonly kind: 'bytes'
  readonly bytes: number
}

interface CountValue {
  readonly kind: 'count'
  readonly count: number
}

/** A digest: a terminal shows its first digits. */
interface DigestValue {
  readonly kind: 'digest'
  readonly digest: string
}

interface NoValue {
  readonly kind: 'none'
}

/** What a value leads to: something of the mirror, or an address of upstream's. */
export type Link = OwnLink | { readonly kind: 'web'; readonly url: string }

/** What a value leads to on this mirror, by its kind and name: only a page knows where that is. */
export type OwnLink =
  | {
      readonly kind: 'record' | 'record file' | 'vulnerability' | 'tag' | 'view' | 'path'
      readonly name: string
    }
  | DocumentLink
  | { readonly kind: 'findings'; readonly tag: string; readonly of: string }
  | { readonly kind: 'package'; readonly ecosystem: string; readonly name: string }
  | { readonly kind: 'changes'; readonly source: SourceName; readonly since: string }

/** A link to a document of an artifact: its file, or what a page shows of its contents. */
export interface DocumentLink {
  readonly kind: 'document'
  readonly part: 'file' | 'contents'
  readonly artifact: string
  /** Which of the artifact's documents, from 0. */
  readonly number: number
}

/** The value of what is not there. */
export const NONE: NoValue = { kind: 'none' }

/** Returns the value of anything of upstream's as text, cut to `longest` characters (300). */
export function textValue(value: unknown, longest?: number): Value {
  if (value === null || value === undefined || value === '') return NONE
  return { kind: 'text', text: clip(textOfJson(value), longest) }
}

/** Returns the value of an id, a path or a digest. */
export function codeValue(text: string, link?: Link): Value {
  return { kind: 'text', text: clip(text), isCode: true, ...(link !== undefined && { link }) }
}

/** Returns a text that leads to something. */
export function linkValue(text: string, link: Link): Value {
  return { kind: 'text', text: clip(text), link }
}

/** A time as the service writes it, and nothing else. */
export const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/

/** Returns the value of a time, Unix milliseconds or as upstream writes it; '' is no note. */
export function timeValue(at: number | string, note = ''): TimeValue {
  return { kind: 'time', at, ...(note !== '' && { note }) }
}

/** Returns the value of a number of bytes. */
export function bytesValue(bytes: number): Value {
  return { kind: 'bytes', bytes }
}

/** Returns the value of a digest. */
export function digestValue(digest: string): Value {
  return { kind: 'digest', digest }
}

/** Returns the value of a number of things. */
export function countValue(count: number): Value {
  return { kind: 'count', count }
}

/** Returns the columns of a table, each with its name. */
export function columnsOf({ columns }: Pick<Table, 'columns'>): Column[] {
  return columns.map((column) => (typeof column === 'string' ? { name: column } : column))
}

/** Returns values as a list, one alone too. */
export function listOf(values: Value | readonly Value[]): readonly Value[] {
  return [values].flat()
}
