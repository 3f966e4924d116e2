import { createHash } from 'node:crypto'
import { SOURCES, type SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { createCatalogExtras, createCatalogPages } from './catalog-pages.ts'
import { type Pages, createOsvPages } from './osv-pages.ts'
import { type CarriedRow, ROW_KINDS, type RowKind, type RowValues, combineDigests, hashRow, lineOf } from './rows.ts'

/** Rows read per query: between two queries the connection is free. */
const PAGE = 2_000
/** Rows per query of documents, each of which scans all answers. */
const DOCUMENTS = 20_000

/** Creates reads of replicated rows (everything that readers see, in a fixed order); usable on any connection. */
export function createCarriedReader(db: Db) {
  const pages: { [K in RowKind]: Pages<RowValues[K]> } = {
    ...createOsvPages(db),
    ...createCatalogPages(db),
  }
  const extras = createCatalogExtras(db)
  const hasSnapshot = db.prepare<[string], number>('SELECT 1 FROM snapshot WHERE source = ?').pluck()

  function* eachRow<K extends RowKind>(source: SourceName, kind: K): Generator<CarriedRow<K>> {
    const limit = kind === 'catalog-document' ? DOCUMENTS : PAGE
    for (let after = ''; ;) {
      const values: RowValues[K][] = pages[kind](source, after, limit)
      for (const value of values) yield { kind, key: value.key, hash: hashRow(kind, value), value }
      const last = values.at(-1)
      if (last === undefined || values.length < limit) return
      after = last.key
    }
  }

  const digestOf = (source: SourceName): string => {
    const digest = createHash('sha256')
    for (const kind of ROW_KINDS[source]) {
      let text = ''
      for (const { key, hash } of eachRow(source, kind)) {
        text += `${kind} ${key} ${hash}\n`
        if (text.length > 65_536) {
          digest.update(text)
          text = ''
        }
      }
      digest.update(text)
    }
    return digest.digest('hex')
  }

  const listStoredSources = (): SourceName[] => SOURCES.filter((source) => hasSnapshot.get(source) === 1)

  return {
    /** Sources that have a snapshot, in the order of `SOURCES`. */
    listStoredSources,
    /** Yields the rows of a kind in key order. Rows up to the current key may be written meanwhile. */
    eachRow,
    /** Returns the line of a row in a bundle, with the bytes of which the hash covers only the digest. */
    rowLine<K extends RowKind>(row: CarriedRow<K>): string {
      const { kind, key, value } = row
      const extra = kind in extras ? extras[kind as keyof typeof extras](key) : undefined
      return lineOf(value, extra as never) // `kind` determines its type
    },
    /** Returns the state digest of a source, hex: SHA-256 over `kind key hash` and a newline for each of its rows. */
    digestOf,
    /** Returns the digests of the stored sources, and their combined digest. */
    digestSources(sources: readonly SourceName[] = listStoredSources()): {
      digest: string
      sources: Partial<Record<SourceName, string>>
    } {
      const digests = Object.fromEntries(sources.map((source) => [source, digestOf(source)]))
      return { digest: combineDigests(digests), sources: digests }
    },
  }
}

export type CarriedReader = ReturnType<typeof createCarriedReader>
