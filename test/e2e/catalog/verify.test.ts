import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { databasePath, openReader } from '../../../src/store/database/open.ts'
import { type VerifyReport, isSoundVerdict } from '../../../src/sync/verify/report.ts'
import { verifyStore } from '../../../src/sync/verify/verify.ts'
import { type CatalogBench, filledCatalogBench } from '../../support/catalog/mirror.ts'
import { compare } from '../../support/catalog/compare.ts'
import { longTest, test } from '../../support/tables.ts'

const SERVICE = { images: 2, tags: 6, packages: 4, tickets: 30, avrs: 2, subscriptions: 2 }

async function verify({ dir }: CatalogBench): Promise<VerifyReport> {
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  try {
    return await verifyStore(db, dir)
  } finally {
    db.close()
  }
}

/** Changes the database behind the mirror's back. */
function tamper({ dir }: CatalogBench, sql: string): void {
  const db = new Database(databasePath(dir))
  expect(db.prepare(sql).run().changes).toBeGreaterThan(0)
  db.close()
}

const mirrored = (): Promise<CatalogBench> => filledCatalogBench(SERVICE, { PATCHMIRROR_CATALOG_SCOPE: 'all' })

const ONE = (table: string): string => `rowid IN (SELECT rowid FROM ${table} LIMIT 1 OFFSET 3)`

const DAMAGE: readonly (readonly [what: string, sql: string])[] = [
  ['an answer', `UPDATE catalog_answer SET body = zeroblob(40) WHERE body IS NOT NULL AND ${ONE('catalog_answer')}`],
  ['an item of a list', `UPDATE catalog_entry SET body = CAST('{}' AS BLOB) WHERE ${ONE('catalog_entry')}`],
  ['a lost item', `DELETE FROM catalog_entry WHERE ${ONE('catalog_entry')}`],
  ['a document', `UPDATE catalog_chunk SET bytes = zeroblob(40) WHERE ${ONE('catalog_chunk')}`],
  ['a lost document', `DELETE FROM catalog_document WHERE digest IN (SELECT digest FROM catalog_document LIMIT 1)`],
  ['a lost chunk', `DELETE FROM catalog_chunk WHERE ${ONE('catalog_chunk')}`],
]

describe('the verification of the catalog', () => {
  longTest('finds no fault after a sync, and reports how much it read', async () => {
    const made = await mirrored()
    const verdict = await verify(made)
    expect(verdict).toMatchObject({ catalog: { answers: [], lists: [], documents: [] } })
    expect(isSoundVerdict(verdict)).toBe(true)
    const { entries, answers, documents } = verdict.catalog.checked
    expect(Math.min(entries, answers, documents)).toBeGreaterThan(10)
  })

  test('finds each kind of damage, and the next sync repairs it with few requests', async () => {
    const made = await mirrored()
    for (const [what, sql] of DAMAGE) {
      tamper(made, sql)
      const { catalog } = await verify(made)
      const damaged = [...catalog.answers, ...catalog.lists, ...catalog.documents]
      expect(damaged, what).toHaveLength(1)
      made.store.catalog.invalidate(catalog)
      made.sandbox.requests.clear()
      expect(await made.run('catalog', { kind: 'repair' }), what).toMatchObject({
        state: 'complete',
      })
      expect(made.sandbox.requests.count(), what).toBeLessThan(30)
      expect(isSoundVerdict(await verify(made)), what).toBe(true)
    }
    for (const { path } of made.store.catalog.eachStoredAnswer()) {
      const { mirror } = await compare(made, path)
      expect([200, 404]).toContain(mirror.status)
    }
  })

  longTest('causes the repair of an answer whose validator upstream would confirm', async () => {
    const made = await mirrored()
    tamper(made, `UPDATE catalog_answer SET body = zeroblob(40) WHERE etag IS NOT NULL`)
    const { catalog } = await verify(made)
    expect(catalog.answers).toContain('/v1/me')
    made.store.catalog.invalidate(catalog)
    expect(await made.run('catalog', { kind: 'repair' })).toMatchObject({ state: 'complete' })
    expect(isSoundVerdict(await verify(made))).toBe(true)
    const { mirror, upstream } = await compare(made, '/v1/me')
    expect(mirror).toEqual(upstream)
  })

  longTest('finds a missing answer', async () => {
    const made = await mirrored()
    tamper(made, `DELETE FROM catalog_answer WHERE ${ONE('catalog_answer')}`)
    const verdict = await verify(made)
    expect(verdict.disagreements).toEqual(['the stored catalog differs from the published snapshot'])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { fetched: 1 } })
    expect(isSoundVerdict(await verify(made))).toBe(true)
  })
})
