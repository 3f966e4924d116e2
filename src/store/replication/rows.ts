import { hash } from 'node:crypto'
import { type SourceName, SOURCES } from '../../domain/sources.ts'

/** What a carried row is. Together they are all that readers see of a source, and nothing else. */
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

/** The kinds of rows that each source has, in the order in which they are listed, carried and digested. */
export const ROW_KINDS: Readonly<Record<SourceName, readonly RowKind[]>> = {
  feeds: ['source', 'document'],
  osv: ['source', 'document', 'osv-record', 'osv-tombstone'],
  catalog: CATALOG,
  identity: CATALOG,
}

/** A snapshot and the archive that goes with it; the key is the source's name. Times in unix milliseconds. */
export interface SourceValue {
  key: string
  snapshot: string
  asOf: number
  records: number
  whole: boolean
  /** Of osv; `changed` in unix seconds. */
  archive: { size: number; crc32c: number; sha256: string; changed: number } | null
}

/** A whole document by its path. `blob`: SHA-256 of the stored gzip member, hex; null when upstream has no such path. */
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

/** A path that could not be had. */
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

/** The values of each kind, that is, what its hash covers. */
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

/** What a row's line has besides its values: bytes that the hash covers by their digest, and where chunks end. */
export interface RowExtras {
  source: unknown
  document: unknown
  'osv-record': unknown
  'osv-tombstone': unknown
  /** When it was last walked, unix milliseconds; null: not known. */
  'catalog-list': { confirmed: number | null }
  /** `text` where the bytes are UTF-8, which they nearly always are; else `base64`. */
  'catalog-entry': { text: string } | { base64: string }
  /** The stored gzip member, null where upstream has none; when upstream last confirmed it, unix milliseconds, null: not known. */
  'catalog-answer': { base64: string | null; confirmed: number | null }
  'catalog-lacking': unknown
  /** Bytes of each chunk as it is stored. */
  'catalog-document': { chunks: number[] }
}

/** A row as it is listed. */
export interface CarriedRow<K extends RowKind = RowKind> {
  kind: K
  key: string
  /** 32 hex digits: the first half of the SHA-256 over its kind and its values. */
  hash: string
  value: RowValues[K]
}

/** Its place in the order of all rows, and its hash: what a summary holds of a row. */
export interface SummaryRow {
  source: SourceName
  kind: RowKind
  key: string
  hash: string
}

/** The hash of a row: over its kind, a space and its values as JSON, the members in the order in which this file has them. */
export function hashRow(kind: RowKind, value: RowValue): string {
  return hash('sha256', `${kind} ${JSON.stringify(value)}`, 'hex').slice(0, 32)
}

/** The order of keys: that of their UTF-8 bytes, as SQLite has it. */
export function compareKeys(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const one = a.charCodeAt(at)
    const other = b.charCodeAt(at)
    if (one === other) continue
    // Half of a surrogate pair stands for a character above all others of 16 bits.
    const [high, low] = [isSurrogate(one), isSurrogate(other)]
    return high === low ? one - other : high ? 1 : -1
  }
  return a.length - b.length
}

function isSurrogate(code: number): boolean {
  return (code & 0xf800) === 0xd800
}

/** The order of rows: by source, kind and key. */
export function compareRows(a: Omit<SummaryRow, 'hash'>, b: Omit<SummaryRow, 'hash'>): number {
  if (a.source !== b.source) return SOURCES.indexOf(a.source) - SOURCES.indexOf(b.source)
  if (a.kind !== b.kind) {
    const kinds = ROW_KINDS[a.source]
    return kinds.indexOf(a.kind) - kinds.indexOf(b.kind)
  }
  return compareKeys(a.key, b.key)
}

/** The line of a row in a pack: its values and what the hash does not cover. */
export function lineOf<K extends RowKind>(value: RowValues[K], extra: RowExtras[K]): string {
  return JSON.stringify(typeof extra === 'object' ? { ...value, ...extra } : value)
}

/** The digest of several sources, hex: over `source digest` and a newline each, in the order of `SOURCES`. */
export function combineDigests(digests: Partial<Readonly<Record<SourceName, string>>>): string {
  const held = SOURCES.filter((source) => digests[source] !== undefined)
  return hash('sha256', held.map((source) => `${source} ${digests[source]}\n`).join(''), 'hex')
}

/** The digest of a source of which nothing is held. */
export const EMPTY_DIGEST = hash('sha256', '', 'hex')
