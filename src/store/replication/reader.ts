import { SOURCES, type SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { createCatalogExtras, createCatalogPages } from './catalog-pages.ts'
import { type Pages, createOsvPages, createRecordPages } from './osv-pages.ts'
import { type CarriedRow, type RowKind, type RowValues, ROW_KINDS } from './rows.ts'
import { combineDigests, createStateDigest, hashJson, lineOf } from './rows.ts'

/** Rows per query: between two queries the connection is free. */
const PAGE = 2_000
/** Rows per query of some kinds. More records would outlive a young generation of few megabytes; each query of documents scans all answers. */
const PAGES: { readonly [K in RowKind]?: number } = { 'osv-record': 200, 'catalog-document': 20_000 }

/** Creates reads of replicated rows (everything that readers see, in a fixed order); usable on any connection. */
export function createCarriedReader(db: Db) {
  const pages: { [K in Exclude<RowKind, 'osv-record'>]: Pages<RowValues[K]> } = {
    ...createOsvPages(db),
    ...createCatalogPages(db),
  }
  const records = createRecordPages(db)
  const extras = createCatalogExtras(db)
  const hasSnapshot = db.prepare<[string], number>('SELECT 1 FROM snapshot WHERE source = ?').pluck()

  function* eachRow<K extends RowKind>(source: SourceName, kind: K): Generator<CarriedRow<K>> {
    const limit = PAGES[kind] ?? PAGE
    for (let after = ''; ;) {
      const rows = listRows(source, kind, after, limit)
      for (const [key, json] of rows) yield { kind, key, hash: hashJson(kind, json), json }
      const last = rows.at(-1)
      if (last === undefined || rows.length < limit) return
      after = last[0]
    }
  }

  const listRows = (source: SourceName, kind: RowKind, after: string, limit: number): [key: string, json: string][] =>
    kind === 'osv-record'
      ? records(after, limit)
      : pages[kind](source, after, limit).map((value) => [value.key, JSON.stringify(value)])

  const digestOf = (source: SourceName): string => {
    const digest = createStateDigest()
    for (const kind of ROW_KINDS[source]) for (const row of eachRow(source, kind)) digest.add(row)
    return digest.end()
  }

  const listStoredSources = (): SourceName[] => SOURCES.filter((source) => hasSnapshot.get(source) === 1)

  return {
    /** Sources that have a snapshot, in the order of `SOURCES`. */
    listStoredSources,
    /** Yields the rows of a kind in key order. Rows up to the current key may be written meanwhile. */
    eachRow,
    /** Returns the line of a row in a bundle, with the bytes of which the hash covers only the digest. */
    rowLine<K extends RowKind>(row: CarriedRow<K>): string {
      const { kind, key } = row
      const extra = kind in extras ? extras[kind as keyof typeof extras](key) : undefined
      return lineOf(row, extra as never) // `kind` determines its type
    },
    /** Returns the state digest of a source, hex (`createStateDigest`). */
    digestOf,
    /** Returns the digests of the stored sources, and their combined digest. */
    digestSources(): { digest: string; sources: Partial<Record<SourceName, string>> } {
      const digests = Object.fromEntries(listStoredSources().map((source) => [source, digestOf(source)]))
      return { digest: combineDigests(digests), sources: digests }
    },
  }
}

export type CarriedReader = ReturnType<typeof createCarriedReader>
