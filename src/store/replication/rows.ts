import { createHash } from 'node:crypto'
import { sha256Hex } from '../../base/digest.ts'
import { type SourceName, SOURCES } from '../../base/domain/sources.ts'

/** The kinds of replicated rows. Together they are everything that readers see of a source, and nothing else. */
export type RowKind =
  | 'source'
  | 'document'
  | 'osv-record'
  | 'osv-tombstone'
  | 'catalog-list'
  | 'catalog-entry'
  | 'catalog-answer'
  | 'catalog-lacking'
  | 'catalog-document'

const CATALOG: readonly RowKind[] = [
  'source',
  'catalog-list',
  'catalog-entry',
  'catalog-answer',
  'catalog-lacking',
  'catalog-document',
]

/** The kinds of rows of each source, in the order in which they are listed, replicated and digested. */
export const ROW_KINDS: Readonly<Record<SourceName, readonly RowKind[]>> = {
  feeds: ['source', 'document'],
  osv: ['source', 'document', 'osv-record', 'osv-tombstone'],
  catalog: CATALOG,
  identity: CATALOG,
}

/** A snapshot and its archive; the key is the source's name. Times in Unix milliseconds. */
export interface SourceValue {
  key: string
  snapshot: string
  asOf: number
  records: number
  whole: boolean
  /** For osv only; `changed` in Unix seconds. */
  archive: { size: number; crc32c: number; sha256: string; changed: number } | null
}

/** A document by its path. `blob`: SHA-256 of the stored gzip member, hex; null when upstream has no such path. */
export interface DocumentValue {
  key: string
  present: boolean
  size: number
  sha256: string
  changed: number
  entries: number
  blob: string | null
}

/** A record by its id, without its bytes: they are the member of that name in an archive. */
export interface RecordValue {
  key: string
  modified: string
  crc32: number
  size: number
  sha256: string
  changed: number
  asOf: number | null
}

/** A removed record by its id. */
export interface TombstoneValue {
  key: string
  removedAt: number
}

/** A paged list by its path. */
export interface ListValue {
  key: string
  resource: string
  frame: string
  entries: number
  changed: number
}

/** An item of a list; the key is the list's path, a space, and the item's id. */
export interface EntryValue {
  key: string
  ordinal: number
  /** First half of the SHA-256 of its bytes, hex. */
  sha: string
  facets: (string | null)[]
}

/** An answer by its path. `links` and `mentions` are JSON texts, as stored. */
export interface AnswerValue {
  key: string
  resource: string
  owner: string
  ownerSha: string
  status: number
  size: number
  sha256: string
  changed: number
  links: string
  mentions: string
}

/** A path that could not be fetched. */
export interface MissingValue {
  key: string
  resource: string
}

/** A document by the SHA-256 of its content; `blob` is that digest too. */
export interface CatalogDocumentValue {
  key: string
  size: number
  stored: number
  type: string
  changed: number
  blob: string
}

/** The values of each kind, which its hash covers. */
export interface RowValues {
  source: SourceValue
  document: DocumentValue
  'osv-record': RecordValue
  'osv-tombstone': TombstoneValue
  'catalog-list': ListValue
  'catalog-entry': EntryValue
  'catalog-answer': AnswerValue
  'catalog-lacking': MissingValue
  'catalog-document': CatalogDocumentValue
}

export type RowValue = RowValues[RowKind]

/** Members of a row's line besides its values: bytes of which the hash covers only the digest, and the chunk sizes. */
export interface RowExtras {
  /** The scope that the snapshot was made with (`parseScopeText`); no member where everything is in scope. */
  source: { scope?: string }
  document: unknown
  'osv-record': unknown
  'osv-tombstone': unknown
  /** When it was last walked, Unix milliseconds; null: unknown. */
  'catalog-list': { confirmed: number | null }
  /** `text` if the bytes are UTF-8, as nearly always; else `base64`. */
  'catalog-entry': { text: string } | { base64: string }
  /**
   * The stored gzip member, null if upstream has none; when upstream last confirmed it, Unix milliseconds, null:
   * unknown.
   */
  'catalog-answer': { base64: string | null; confirmed: number | null }
  'catalog-lacking': unknown
  /** Bytes of each stored chunk. */
  'catalog-document': { chunks: number[] }
}

/** A listed row. */
export interface CarriedRow<K extends RowKind = RowKind> {
  kind: K
  key: string
  /** 32 hex digits: the first half of the SHA-256 over its kind and its values. */
  hash: string
  /** Its values as the hash covers them (`valueOf`). */
  json: string
}

/** A row in a summary: its position in the order of all rows, and its hash. */
export interface SummaryRow {
  source: SourceName
  kind: RowKind
  key: string
  hash: string
}

/** Returns the hash of a row: over its kind, a space and its values as JSON, members in the order of this file. */
export function hashRow(kind: RowKind, value: RowValue): string {
  return hashJson(kind, JSON.stringify(value))
}

/** Does the same for values that are JSON already. */
export function hashJson(kind: RowKind, json: string): string {
  return sha256Hex(`${kind} ${json}`).slice(0, 32)
}

/** Returns the values of a listed row. */
export function valueOf<K extends RowKind>({ json }: CarriedRow<K>): RowValues[K] {
  return JSON.parse(json) as RowValues[K] // written from them
}

/** Compares keys by their UTF-8 bytes, as SQLite does. */
export function compareKeys(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const one = a.charCodeAt(at)
    const other = b.charCodeAt(at)
    if (one === other) continue
    // A surrogate is half of a character that is above all others of 16 bits.
    const high = isSurrogate(one)
    const low = isSurrogate(other)
    if (high === low) return one - other
    return high ? 1 : -1
  }
  return a.length - b.length
}

function isSurrogate(code: number): boolean {
  return (code & 0xf800) === 0xd800
}

/** Compares rows by source, kind and key. */
export function compareRows(a: Omit<SummaryRow, 'hash'>, b: Omit<SummaryRow, 'hash'>): number {
  if (a.source !== b.source) return SOURCES.indexOf(a.source) - SOURCES.indexOf(b.source)
  if (a.kind !== b.kind) {
    const kinds = ROW_KINDS[a.source]
    return kinds.indexOf(a.kind) - kinds.indexOf(b.kind)
  }
  return compareKeys(a.key, b.key)
}

/** Returns the line of a row in a bundle: its values and the members that the hash does not cover. */
export function lineOf<K extends RowKind>(row: CarriedRow<K>, extra: RowExtras[K]): string {
  return typeof extra === 'object' ? JSON.stringify({ ...valueOf(row), ...extra }) : row.json
}

type StateRow = Pick<CarriedRow, 'kind' | 'key' | 'hash'>

/** Returns the line that a state digest has for a row. */
export function stateLine({ kind, key, hash }: StateRow): string {
  return `${kind} ${key} ${hash}\n`
}

const PIECE = 16_384

/** Creates the state digest of a source: its rows are added in order. */
export function createStateDigest() {
  const digest = createHash('sha256')
  let text = ''
  return {
    add(row: StateRow): void {
      text += stateLine(row)
      if (text.length < PIECE) return
      digest.update(text)
      text = ''
    },
    /** Adds the lines of rows (`stateLine`). */
    addLines(lines: Uint8Array): void {
      digest.update(text).update(lines)
      text = ''
    },
    /** Returns it, hex: SHA-256 over the lines of all rows. */
    end: (): string => digest.update(text).digest('hex'),
  }
}

/** Returns the digest of several sources, hex: over `source digest` and a newline each, in the order of `SOURCES`. */
export function combineDigests(digests: Partial<Readonly<Record<SourceName, string>>>): string {
  const present = SOURCES.filter((source) => digests[source] !== undefined)
  return sha256Hex(present.map((source) => `${source} ${digests[source]}\n`).join(''))
}

/** The digest of a source of which nothing is stored. */
export const EMPTY_DIGEST = sha256Hex('')
