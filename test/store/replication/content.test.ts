import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { openReader } from '../../../src/store/database/open.ts'
import { contentDigestOf, createContentDigester } from '../../../src/store/replication/content.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { record } from '../fixtures.ts'
import type { Bench } from '../../support/mirror.ts'
import { catalogBench, catalogEnv } from '../../support/catalog/mirror.ts'
import { below, carry, folder } from '../../features/bundles/air-gap.ts'
import { createBench } from '../../support/mirror.ts'
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
