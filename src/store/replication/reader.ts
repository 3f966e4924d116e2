import { createHash } from 'node:crypto'
import { SOURCES, type SourceName } from '../../domain/sources.ts'
import type { Db } from '../database/open.ts'
import { createCatalogExtras, createCatalogPages } from './catalog-pages.ts'
import { type Pages, createOsvPages } from './osv-pages.ts'
import {
  type CarriedRow,
  ROW_KINDS,
  type RowKind,
  type RowValues,
  combineDigests,
  hashRow,
  lineOf,
} from './rows.ts'

/** Rows read at a time: they are listed in pieces, so that the connection is free between two of them. */
const PAGE = 2_000
/** Of documents, for each piece of which all answers are asked. */
const DOCUMENTS = 20_000

/** Reads of carried rows (what readers see, as rows in a fixed order); usable on any connection. */
export function createCarriedReader(db: Db) {
  const pages: { [K in RowKind]: Pages<RowValues[K]> } = {
    ...createOsvPages(db),
    ...createCatalogPages(db),
  }
  const extras = createCatalogExtras(db)
  const held = db.prepare<[string], number>('SELECT 1 FROM snapshot WHERE source = ?').pluck()

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

  const listStoredSources = (): SourceName[] => SOURCES.filter((source) => held.get(source) === 1)

  return {
    /** Sources that have a snapshot, in the order of `SOURCES`. */
    listStoredSources,
    /** The rows of a kind in order of their keys. The connection may be written to meanwhile, up to the key reached. */
    eachRow,
    /** The line of a row in a pack: with the bytes that the hash covers by their digest alone. */
    rowLine<K extends RowKind>(row: CarriedRow<K>): string {
      const { kind, key, value } = row
      const extra = kind in extras ? extras[kind as keyof typeof extras](key) : undefined
      return lineOf(value, extra as never) // the kind says which
    },
    /** The state digest of a source, hex: SHA-256 over `kind key hash` and a newline for each of its rows. */
    digestOf,
    /** The digests of the sources held, and of all of them together. */
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
