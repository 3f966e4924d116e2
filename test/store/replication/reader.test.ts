import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RESOURCES, ownsResource } from '../../../src/base/domain/resources.ts'
import { createCarriedReader } from '../../../src/store/replication/reader.ts'
import { eachDifference } from '../../../src/features/bundles/export/difference.ts'
import {
  type SummaryRow,
  EMPTY_DIGEST,
  combineDigests,
  compareKeys,
  compareRows,
  hashRow,
  valueOf,
} from '../../../src/store/replication/rows.ts'
import {
  type SummaryHeader,
  type SummaryLines,
  lineOfRow,
  parseLine,
  readSummary,
  writeSummary,
} from '../../../src/features/bundles/export/summary.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { ANY_CHARACTER } from '../../support/texts.ts'
import { record, scratch, snapshot, writes } from '../fixtures.ts'

const HEADER: SummaryHeader = {
  format: 1,
  kind: 'patchmirror-summary',
  mirror: 'ab'.repeat(16),
  brief: false,
  digest: 'cd'.repeat(32),
  createdAt: 1,
  imported: null,
  sources: { osv: { digest: 'ef'.repeat(32), snapshot: 'aa', asOf: 1, records: 1 } },
}

async function rowsOf(chunks: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<SummaryRow[]> {
  const lines: string[] = []
  for await (const page of (await readSummary(chunks)).lines) lines.push(...page)
  return lines.map((line, i) => parseLine(line, lines[i - 1] ?? null))
}

async function collect(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

const summary = (...lines: string[]): Buffer[] => [gzipSync(lines.join('\n'))]

test('keys of rows are in the order of SQLite', () => {
  const db = openWriter(scratch())
  const sort = db.prepare<[string], string>('SELECT value FROM json_each(?) ORDER BY value').pluck()
  const text = fc.string({ unit: ANY_CHARACTER }).filter((one) => one !== '' && !one.includes('\0'))
  fc.assert(
    fc.property(fc.array(text), (keys) => {
      expect([...keys].sort(compareKeys)).toEqual(sort.all(JSON.stringify(keys)))
    }),
  )
  db.close()
})

test('a resource belongs to the source that the table of resources states', () => {
  const store = writes()
  const db = openWriter(store.dir)
  const insert = db.prepare(
    "INSERT INTO catalog_list (id, path, resource, frame, entries, changed) VALUES (NULL, ?, ?, '{}', 0, 1)",
  )
  for (const { name } of RESOURCES) insert.run(`/${name}`, name)
  const carried = createCarriedReader(db)
  for (const source of ['catalog', 'identity'] as const) {
    const listed = [...carried.eachRow(source, 'catalog-list')].map((row) => valueOf(row).resource)
    const own = RESOURCES.map(({ name }) => name).filter((name) => ownsResource(source, name))
    expect(listed.sort()).toEqual(own.sort())
  }
  db.close()
})

test('the hash of a record that SQLite writes as JSON is that of its values', async () => {
  const store = writes()
  const text = fc.string({ unit: ANY_CHARACTER, minLength: 1 })
  const integer = fc.maxSafeNat()
  const values = fc.record({ id: text, modified: text, crc32: fc.nat(), size: integer, asOf: fc.option(integer) })
  const strange = ['"', '\\', '\u0000\u001f\u007f\u2028', '__proto__'].map((id) => record(id))
  const made = [...fc.sample(values, 200).map((one) => ({ ...record(one.id), ...one, fix: false })), ...strange]
  const given = [...new Map(made.map((one) => [one.id, one])).values()]
  await store.transaction(() => {
    for (const one of given) store.osv.putRecord(one, 5)
    return Promise.resolve({ commit: true })
  })
  const expected = given
    .map(({ id: key, modified, crc32, size, sha256, asOf }) => {
      return { key, modified, crc32, size, sha256: sha256.toString('hex'), changed: 5, asOf }
    })
    .sort((a, b) => compareKeys(a.key, b.key))
  const listed = [...store.carried.eachRow('osv', 'osv-record')]
  expect(listed.map((row) => [valueOf(row), row.hash])).toEqual(
    expected.map((value) => [value, hashRow('osv-record', value)]),
  )
})

describe('the digests and summaries of a state', () => {
  test('are equal exactly for equal content, independent of its history', async () => {
    const one = writes()
    const other = writes()
    for (const [store, ids] of [
      [one, ['a', 'b', 'ü', '😀']],
      [other, ['😀', 'b', 'ü', 'a']],
    ] as const)
      await store.transaction(() => {
        for (const id of ids) store.osv.putRecord(record(id), 5)
        store.snapshots.replaceSnapshot(snapshot())
        return Promise.resolve({ commit: true })
      })
    expect(one.carried.digestSources()).toEqual(other.carried.digestSources())
    const first = one.carried.digestOf('osv')
    const second = one.carried.digestOf('feeds')
    expect(second).toBe(EMPTY_DIGEST)
    expect(one.carried.digestSources().digest).toBe(combineDigests({ osv: first }))
    await other.exclusive(() => other.osv.updateRecord({ ...record('ü'), modified: 'another' }, 5))
    expect(other.carried.digestOf('osv')).not.toBe(first)
    const chunks = [await collect(writeSummary(one.carried, HEADER))]
    const rows = await rowsOf(chunks)
    expect(rows.map(({ kind, key }) => `${kind} ${key}`)).toEqual([
      ...['source osv', 'osv-record a', 'osv-record b', 'osv-record ü', 'osv-record 😀'],
    ])
    expect([...rows].sort(compareRows)).toEqual(rows)
    const { lines } = await readSummary(chunks)
    const found = []
    for await (const { kind, key, row } of eachDifference(other.carried, 'osv', [lines]))
      found.push([kind, key, row?.hash === undefined])
    expect(found).toEqual([['osv-record', 'ü', false]])
  })

  test('lead from each of several states to the stored one', async () => {
    const store = writes()
    await store.transaction(() => {
      for (const id of ['a', 'c']) store.osv.putRecord(record(id), 5)
      return Promise.resolve({ commit: true })
    })
    const hashes = new Map([...store.carried.eachRow('osv', 'osv-record')].map(({ key, hash }) => [key, hash]))
    async function* state(...keys: string[]): SummaryLines {
      await Promise.resolve()
      const other = '0'.repeat(32)
      for (const key of keys) yield [lineOfRow('osv', { kind: 'osv-record', key, hash: hashes.get(key) ?? other })]
    }
    const found: string[] = []
    const states = [state('a', 'b', 'c'), state('a', 'b', 'd'), state('a', 'c', 'e')]
    for await (const { key, row } of eachDifference(store.carried, 'osv', states))
      found.push(`${key} ${row === null ? 'goes' : 'comes'}`)
    expect(found).toEqual(['b goes', 'c comes', 'd goes', 'e goes'])
  })

  test.each([
    ['is no gzip', [Buffer.from('text')]],
    ['is empty', summary('')],
    ['is something else', summary('{"format":1}', '')],
    ['is of a later format', summary(JSON.stringify({ ...HEADER, format: 2 }), '')],
    ['has a source of another name', summary(JSON.stringify({ ...HEADER, sources: { x: {} } }), '')],
    ['has a line that is not a row', summary(JSON.stringify(HEADER), 'osv osv-record x y', '')],
    ['has a kind of another source', summary(JSON.stringify(HEADER), `feeds osv-record ${'0'.repeat(32)} y`, '')],
    ['is cut short', [gzipSync(`${JSON.stringify(HEADER)}\nosv`)]],
    ['is cut short as gzip', [gzipSync(`${JSON.stringify(HEADER)}\n`).subarray(0, -9)]],
    [
      'is out of order',
      summary(JSON.stringify(HEADER), ...['b', 'a'].map((key) => `osv osv-record ${'0'.repeat(32)} ${key}`), ''),
    ],
  ])('are refused as a file that %s', async (_, chunks) => {
    await expect(rowsOf(chunks)).rejects.toThrow(/was not written by "patchmirror bundle need"/)
  })
})

test('the ledger gives a known state its number, and a new state a higher one', async () => {
  const store = writes()
  const [a, b] = ['a', 'b'].map((digest) => ({ digest, snapshot: digest, asOf: 1 }))
  const give = (sources: Parameters<typeof store.ledger.recordExport>[0]): Promise<number> =>
    store.exclusive(() => store.ledger.recordExport(sources, 1, Buffer.from('summary')))
  if (a === undefined || b === undefined) throw new Error('two')
  expect(await give({ osv: a })).toBe(1)
  expect(await give({ osv: a })).toBe(1)
  expect(await give({ feeds: b })).toBe(2)
  expect(await give({ osv: a })).toBe(1)
  expect(await give({ osv: b })).toBe(3)
  expect(await give({ osv: a })).toBe(4)
  expect(await give({ osv: a, feeds: b })).toBe(5)
  expect(await give({ osv: a })).toBe(6)
  await store.exclusive(() => store.ledger.forgetSummaries(2, [1]))
  expect(store.ledger.listExports().map(({ kept }) => kept)).toEqual([true, false, false, false, true, true])
  expect(store.ledger.readExportSummary(2)).toBeNull()
  expect(store.ledger.readExportSummary(6)?.toString()).toBe('summary')
  expect(store.ledger.readIdentity()).toMatch(/^[\da-f]{32}$/)
  expect(writes().ledger.readIdentity()).not.toBe(store.ledger.readIdentity())
})
