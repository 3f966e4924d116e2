import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { openReader } from '../../../src/store/database/open.ts'
import { contentDigestOf, createContentDigester } from '../../../src/store/replication/content.ts'
import { type Writes, openWrites } from '../../../src/store/writes.ts'
import { record } from '../fixtures.ts'
import type { Bench } from '../../support/mirror.ts'
import { catalogBench, catalogEnv } from '../../support/catalog/mirror.ts'
import { below, carry, folder } from '../../features/bundles/air-gap.ts'
import { createBench } from '../../support/mirror.ts'
import { tamper } from '../../sync/fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const contentOf = ({ store }: Pick<Bench, 'store'>) => contentDigestOf(store.snapshots)

longTest(
  'two mirrors that synced by themselves by other ways have one content digest, which one byte changes',
  async () => {
    const one = await catalogBench({ images: 2, tags: 4, packages: 3, tickets: 5 })
    const { sandbox } = one
    for (const source of ['osv', 'feeds', 'catalog'] as const)
      expect(await one.run(source)).toMatchObject({ state: 'complete' })
    sandbox.feed.add(2)
    sandbox.feed.remove(1)
    sandbox.feed.change(3)
    // The first one fetches these records singly, the other one everything from the archive, the catalog first.
    expect(await one.run('osv')).toMatchObject({ state: 'complete' })
    expect(await one.run('feeds')).toMatchObject({ state: 'complete' })
    const other = await createBench({
      sandbox: { records: 1, large: 0 },
      env: { ...catalogEnv(sandbox), PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url },
    })
    try {
      for (const source of ['catalog', 'feeds', 'osv'] as const)
        expect(await other.run(source)).toMatchObject({ state: 'complete' })
      expect(contentOf(other)).toEqual(contentOf(one))
      expect(Object.keys(contentOf(one).sources)).toHaveLength(3)
      expect(contentOf(one).digest).toMatch(/^[\da-f]{64}$/)
      const there = below()
      await there.take((await carry(one.dir, folder())).files)
      expect(contentOf(there)).toEqual(contentOf(one))

      const [id = ''] = sandbox.feed.ids()
      const changed = Buffer.from(`${sandbox.feed.record(id).toString()} `)
      sandbox.feed.put(id, changed, '2026-09-01T00:00:00Z')
      await other.run('osv')
      expect(contentOf(other).sources.feeds).toBe(contentOf(one).sources.feeds)
      expect(contentOf(other).sources.osv).not.toBe(contentOf(one).sources.osv)
      expect(contentOf(other).digest).not.toBe(contentOf(one).digest)
      await one.run('osv')
      expect(contentOf(other)).toEqual(contentOf(one))
    } finally {
      await other.close()
    }
  },
)

test('the digest of all sources is not known while that of one is not computed, and of nothing there is none', () => {
  const of = (digests: Record<string, string | null>) =>
    contentDigestOf({
      readSnapshot(source) {
        const contentDigest = digests[source]
        return contentDigest === undefined ? null : { contentDigest }
      },
    })
  expect(of({})).toEqual({ digest: null, sources: {} })
  expect(of({ osv: 'aa', feeds: null })).toEqual({ digest: null, sources: { osv: 'aa', feeds: null } })
  expect(of({ osv: 'aa', feeds: 'bb' }).digest).toMatch(/^[\da-f]{64}$/)
  expect(of({ osv: 'aa', feeds: 'bb' }).digest).not.toBe(of({ osv: 'aa' }).digest)
})

test('the lines of records are JSON as JavaScript writes it, whatever characters ids and stamps have', async () => {
  const dir = folder()
  const store = openWrites(dir)
  const reader = openReader(dir)
  if (reader === null) throw new Error('there is no database')
  try {
    const points = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code))
    const texts = [...points, '\u2028', '\ufeff', '\uffff', '\u{1f419}', 'plain'].map((c) => `R${c}-`)
    await store.transaction(() => {
      for (const text of texts) store.osv.insertRecord({ ...record(text), modified: `${text}1` }, 1)
      const one = record('S')
      for (let n = 0; n < 4096; n++) store.osv.insertRecord({ ...one, id: `S-${n}` }, 1) // more than one read
      return Promise.resolve({ commit: true })
    })
    const expected = createHash('sha256')
    for (const [id, sha256, modified] of store.osv.eachDigest())
      expected.update(`${JSON.stringify(['record', id, modified, sha256.toString('hex')])}\n`)
    expect(createContentDigester(reader)('osv')).toBe(expected.digest('hex'))
  } finally {
    reader.close()
    store.close()
  }
})

describe('a content digest after a proof of the stored records', () => {
  const snapshot = { source: 'osv', runId: 1, publishedAt: 1, asOf: 1, whole: true } as const
  const id = fc.integer({ min: 0, max: 5000 }).map((n) => `${n % 7 === 0 ? 'ü\u{1f419}' : 'R'}-"${n}`)
  const write = fc.record({ id, kind: fc.constantFrom('update', 'remove', 'mark') })

  /** Publishes 5,000 records, and calls `test` with the store and a digest of everything that is stored. */
  const published = async (
    test: (store: Writes, digest: () => string, dir: string) => Promise<void>,
  ): Promise<void> => {
    const dir = folder()
    const store = openWrites(dir)
    const reader = openReader(dir)
    if (reader === null) throw new Error('there is no database')
    const digestOf = createContentDigester(reader)
    try {
      await store.transaction(() => {
        const one = record('S')
        for (let n = 0; n < 4900; n++) store.osv.insertRecord({ ...one, id: `R-"${n}` }, 1)
        for (let n = 0; n < 4900; n += 14) store.osv.insertRecord({ ...one, id: `ü\u{1f419}-"${n}` }, 1)
        store.snapshots.replaceSnapshot({ ...snapshot, id: 'first', records: 5250 })
        return Promise.resolve({ commit: true })
      })
      await test(store, () => digestOf('osv'), dir)
    } finally {
      reader.close()
      store.close()
    }
  }

  longTest('is that of all stored records, whatever was written in between', () =>
    published(async (store, digest) => {
      const batches = fc.sample(fc.array(write, { maxLength: 30 }), { numRuns: 25, seed: 14 })
      for (const [n, writes] of [[], ...batches].entries()) {
        const proof = store.snapshots.proveRecords()
        expect(proof?.kept?.blocks).toHaveLength(Math.ceil(store.osv.countRecords() / 128))
        await store.transaction(() => {
          for (const { id: name, kind } of writes) {
            const changed = { ...record(name), id: name, modified: `${n}` }
            if (kind === 'update') store.osv.updateRecord(changed, 1)
            if (kind === 'remove') store.osv.removeRecord(name, 1, 1)
            if (kind === 'mark') store.osv.updateRecord({ ...changed, modified: `"${n}\n` }, 1)
          }
          const records = store.osv.countRecords()
          store.snapshots.replaceSnapshot({ ...snapshot, id: `${n}`, records }, proof)
          return Promise.resolve({ commit: true })
        })
        expect(store.snapshots.readSnapshot('osv')?.contentDigest).toBe(digest())
        expect(store.snapshots.proveRecords()?.records).toBe(store.osv.countRecords())
      }
    }),
  )

  test('is read completely when another program has written since the proof', () =>
    published(async (store, digest, dir) => {
      const proof = store.snapshots.proveRecords()
      tamper(dir, `UPDATE osv_record SET modified = 'other' WHERE id = 'R-"40'`)
      await store.transaction(() => {
        store.osv.removeRecord('R-"4', 1, 1)
        store.snapshots.replaceSnapshot({ ...snapshot, id: 'next', records: 5249 }, proof)
        return Promise.resolve({ commit: true })
      })
      expect(store.snapshots.readSnapshot('osv')?.contentDigest).toBe(digest())
    }))

  test('is not proved of records that another program changed', () =>
    published((store, _, dir) => {
      tamper(dir, `UPDATE osv_record SET modified = 'other' WHERE id = 'R-"40'`)
      expect(store.snapshots.proveRecords()).toBeNull()
      return Promise.resolve()
    }))
})
