import Database from 'better-sqlite3'
import { crc32 as crc32Of } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { newestPast } from '../../../src/base/time.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import { contentOf } from '../../../src/store/database/gzip.ts'
import { listUntidy } from '../../../src/store/database/schema/untidy-ids.ts'
import { bothTest, LONG, test } from '../../support/tables.ts'
import { NOW, record, writes } from '../fixtures.ts'

const SECONDS = NOW / 1000

describe('a record', () => {
  test('is returned byte for byte, with its metadata', () => {
    const store = writes()
    const stored = record('ROOT ünï/🐙', '{"id":"x"}')
    store.osv.insertRecord(stored, SECONDS)
    const { body, size, sha256, modified } = stored
    expect(store.osv.readRecord(stored.id)).toEqual({
      body,
      size,
      sha256,
      modified,
      changed: SECONDS,
    })
    expect(store.osv.readServed(stored.id)).toEqual({
      body,
      size,
      changed: SECONDS,
      tag: sha256.toString('hex').slice(0, 32),
      bodyCrc32: crc32Of(body),
      asOf: stored.asOf,
      outdated: 0,
    })
    const { crc32, asOf } = stored
    expect(store.osv.readEntry(stored.id)).toEqual({ id: stored.id, modified, crc32, size, asOf })
    expect(contentOf(body, size).toString()).toBe('{"id":"x"}')
    expect([store.osv.readRecord('y'), store.osv.readServed('y'), store.osv.readEntry('y')]).toEqual([null, null, null])
  })

  test('is identified by the exact bytes of its id', () => {
    const store = writes()
    for (const id of ['a', 'A', 'a ', 'ä', 'a\u0308']) store.osv.insertRecord(record(id), 1)
    expect(store.osv.countRecords()).toBe(5)
    expect(store.osv.sumIdBytes()).toBe(1 + 1 + 2 + 2 + 3)
    expect(store.osv.readRecord('a ')).not.toBeNull()
    expect(() => store.osv.insertRecord(record('a'), 1)).toThrow(/UNIQUE/)
  })

  test('that is replaced moves its date forward by a second at least', () => {
    const store = writes()
    store.osv.updateRecord(record('R', 'one'), 100)
    store.osv.updateRecord(record('R', 'two'), 50)
    expect(store.osv.readRecord('R')).toMatchObject({ changed: 101, size: 3 })
    store.osv.updateRecord(record('R', 'three'), 500)
    expect(store.osv.readRecord('R')).toMatchObject({ changed: 500, size: 5 })
    expect(store.osv.countRecords()).toBe(1)
    expect([...store.osv.eachSum()].length).toBe(1)
  })

  test('that is removed leaves a tombstone, which expires or is removed when the record returns', () => {
    const store = writes()
    for (const id of ['a', 'b', 'c']) {
      store.osv.insertRecord(record(id), 1)
      store.osv.removeRecord(id, 7, NOW)
    }
    expect([store.osv.readRecord('a'), store.osv.countRecords()]).toEqual([null, 0])
    expect(store.osv.readTombstone('a')).toEqual({ id: 'a', removedAt: NOW })
    store.osv.removeRecord('b', 8, NOW + 10)
    store.osv.insertRecord(record('c'), 1)
    store.osv.forgetTombstones(NOW)
    expect([store.osv.readTombstone('a'), store.osv.readTombstone('c')]).toEqual([{ id: 'a', removedAt: NOW }, null])
    store.osv.forgetTombstones(NOW + 10)
    expect([store.osv.readTombstone('a'), store.osv.readTombstone('b')]).toEqual([
      null,
      { id: 'b', removedAt: NOW + 10 },
    ])
  })

  test('that is removed loses its bytes, and no other record does', () => {
    const store = writes()
    for (const id of ['a', 'b', 'c']) store.osv.insertRecord(record(id), 1)
    store.osv.removeRecord('b', 1, NOW)
    expect([...store.osv.eachContent()].map(([id, , , body]) => [id, body.length > 0])).toEqual([
      ['a', true],
      ['c', true],
    ])
    expect(store.osv.countBodies()).toBe(2)
  })
})

describe('all records', () => {
  test('are iterated in the order of their ids’ bytes, in both directions', () => {
    const store = writes()
    const ids = ['b', 'a', 'Z', 'ä', '🐙', '\uff5e', 'a-1', 'a']
    for (const id of new Set(ids)) store.osv.insertRecord(record(id), 1)
    const sorted = [...new Set(ids)].sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)))
    expect([...store.osv.eachPair()].map(([id]) => id)).toEqual(sorted)
    expect([...store.osv.eachContent()].map(([id]) => id)).toEqual(sorted)
  })

  test('are not all read to find ids with a space or a percent sign', () => {
    const store = writes()
    for (const id of ['plain', 'a b', '50%', ' at the start', 'at the end\u3000', 'x-y'])
      store.osv.insertRecord(record(id), 1)
    expect(store.osv.listUntidyIds(10).sort()).toEqual([' at the start', '50%', 'a b', 'at the end\u3000'])
    expect(store.osv.listUntidyIds(2)).toHaveLength(2)
    const db = new Database(databasePath(store.dir), { readonly: true })
    const plan = db.prepare<[number], { detail: string }>(`EXPLAIN QUERY PLAN ${listUntidy('osv_record')}`).all(1)
    db.close()
    expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('osv_untidy')])
  })

  test('around an id are counted in the part of the archive to which it belongs', () => {
    const store = writes()
    expect(store.osv.isPartStored('a')).toBeNull()
    for (const id of ['a', 'b', 'c']) store.osv.insertRecord(record(id), 1)
    const part = { bytes: 1, crc32c: 1, sha256: '0'.repeat(64) }
    store.osv.replaceParts([
      { ...part, first: '', members: 2 },
      { ...part, first: 'c', members: 2 },
    ])
    expect(['a', 'bb', 'c', 'zz'].map((id) => store.osv.isPartStored(id))).toEqual([true, true, false, false])
  })

  test('are counted as zero in an empty store', () => {
    const store = writes()
    expect([store.osv.countRecords(), store.osv.sumIdBytes(), store.osv.countBodies()]).toEqual([0, 0, 0])
    expect(store.osv.readArchive()).toBeNull()
  })

  bothTest('have the newest stamp of all that are not in the future, whatever their form is', () => {
    const store = writes()
    const stamp = fc.oneof(
      fc.constantFrom('', 'soon', ' 2026-05-03', '9999-01-01', '2026-05', '2026-05-02T00:30:00+02:00'),
      fc
        .tuple(fc.integer({ min: -3, max: 3 }), fc.constantFrom('Z', '.5Z', '-07:00', '+23:00', ''))
        .map(([day, zone]) => {
          const at = new Date(NOW + day * 86_400_000).toISOString()
          return zone === '' ? at.slice(0, 10) : at.slice(0, 19) + zone
        }),
    )
    fc.assert(
      fc.property(fc.array(stamp, { maxLength: 6 }), (stamps) => {
        for (let n = 0; n < 6; n++) store.osv.dropRecord(`R-${n}`)
        for (const [n, modified] of stamps.entries()) store.osv.insertRecord({ ...record(`R-${n}`), modified }, 1)
        expect(store.osv.readNewestModified(NOW)).toBe(newestPast(stamps, NOW))
      }),
      { numRuns: LONG ? 2_000 : 15 },
    )
  })

  test('have one archive, replaced as a whole', () => {
    const store = writes()
    const info = { file: 'a.zip', size: 1, crc32c: 2 ** 32 - 1, sha256: 'aa', changed: 5 }
    store.osv.replaceArchive(info)
    store.osv.replaceArchive({ ...info, file: 'b.zip' })
    expect(store.osv.readArchive()).toEqual({ ...info, file: 'b.zip' })
  })
})
