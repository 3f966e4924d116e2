import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { expect, onTestFinished } from 'vitest'
import { sha256Hex } from '../../../../src/base/digest.ts'
import { SOURCES, type SourceName } from '../../../../src/base/domain/sources.ts'
import { type ExportOptions, exportBundle } from '../../../../src/features/bundles/export/export.ts'
import { ROW_KINDS, hashRow, valueOf } from '../../../../src/store/replication/rows.ts'
import { parseLine, readSummary } from '../../../../src/features/bundles/export/summary.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { keyPair, plainExport, scratch } from '../fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

const folder = scratch()
const key = keyPair(folder, 'key')
let count = 0
const NOW = Date.UTC(2026, 7, 1)

function optionsFor(dir: string, more: Partial<ExportOptions> = {}): ExportOptions {
  const path = join(folder, `${++count}.zip`)
  return { ...plainExport({ dataDir: dir, path, keys: [key], now: () => NOW }), ...more }
}

async function mirror(): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 300, large: 0, service: false } })
  onTestFinished(() => bench.close())
  for (const source of ['feeds', 'osv'] as const) await bench.run(source)
  return bench
}

interface Row {
  readonly source: SourceName
  readonly kind: string
  readonly key: string
  readonly hash: string
  readonly line: string
}

/** All rows that are stored, each hashed by its values. */
function rowsOf({ store: { carried } }: Bench): Row[] {
  return SOURCES.flatMap((source) =>
    ROW_KINDS[source].flatMap((kind) =>
      [...carried.eachRow(source, kind)].map((row) => {
        const hash = hashRow(kind, valueOf(row))
        return { source, kind, key: row.key, hash, line: carried.rowLine(row) }
      }),
    ),
  )
}

const nameOf = ({ source, kind, key: name }: Omit<Row, 'line' | 'hash'>): string => `${source}/${kind} ${name}`

/** What leads from each of the states to the rows that are stored, by pack: each row is compared with each state. */
function differences(now: readonly Row[], states: readonly (readonly Row[])[]): Map<string, string[]> {
  const maps = [now, ...states].map((rows) => new Map(rows.map((row) => [nameOf(row), row])))
  const [current] = maps
  const names = new Map(maps.flatMap((rows) => [...rows]))
  const packs = new Map<string, Map<string, string>>()
  for (const [name, { source, kind, key: own }] of names) {
    const is = current?.get(name)
    if (maps.every((rows) => rows.get(name)?.hash === is?.hash)) continue
    const pack = `rows/${source}/${kind}-00001.jsonl`
    packs.set(
      pack,
      (packs.get(pack) ?? new Map<string, string>()).set(own, is?.line ?? JSON.stringify({ removed: own })),
    )
  }
  const inOrder = (lines: Map<string, string>): string[] =>
    [...lines].sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other))).map(([, line]) => line)
  return new Map([...packs].map(([pack, lines]) => [pack, inOrder(lines)]))
}

function packsIn(path: string): Map<string, string[]> {
  const entries = new AdmZip(path).getEntries().filter(({ entryName }) => entryName.startsWith('rows/'))
  return new Map(entries.map((entry) => [entry.entryName, entry.getData().toString().trimEnd().split('\n')]))
}

function digestIn(rows: readonly Row[], source: SourceName): string {
  const own = rows.filter((row) => row.source === source)
  return sha256Hex(own.map((row) => `${row.kind} ${row.key} ${row.hash}\n`).join(''))
}

async function summaryOf({ store }: Bench, sequence: number): Promise<string[]> {
  const { header, lines } = await readSummary([store.ledger.readExportSummary(sequence) ?? Buffer.alloc(0)])
  const names: string[] = []
  for await (const page of lines)
    names.push(...page.map((line) => parseLine(line, null)).map((row) => `${nameOf(row)} ${row.hash}`))
  expect(header.sources.osv?.digest).toBe(store.ledger.readExport(sequence)?.sources.osv?.digest)
  return names
}

/** Exports a delta, and compares it with the differences from the states since its base, row by row. */
async function expectDelta(bench: Bench, since: number, states: readonly (readonly Row[])[]): Promise<Row[]> {
  const now = rowsOf(bench)
  const { manifest, files } = await exportBundle(optionsFor(bench.dir, { since: String(since) }))
  const [path = ''] = files
  expect(packsIn(path)).toEqual(differences(now, states))
  for (const source of ['feeds', 'osv'] as const)
    expect([source, manifest.sources[source]?.digest]).toEqual([source, digestIn(now, source)])
  expect(await summaryOf(bench, manifest.sequence)).toEqual(now.map((row) => `${nameOf(row)} ${row.hash}`))
  return now
}

test('a delta has what differs from its bases, row by row, whatever was removed, came again or was interrupted', async () => {
  const bench = await mirror()
  const { feed } = bench.sandbox
  const first = rowsOf(bench)
  await exportBundle(optionsFor(bench.dir))
  const ids = first.filter(({ kind }) => kind === 'osv-record').map((row) => row.key)
  const gone = ids[7] ?? ''
  const back = ids.at(-1) ?? ''
  for (let day = 0; day < 3; day++) {
    feed.change(4)
    feed.add(2)
    await bench.run('osv')
  }
  const before = bench.content(back)
  for (const id of [gone, back, ids[0] ?? '']) feed.delete(id)
  await bench.run('osv')
  const second = await expectDelta(bench, 1, [first])
  feed.put(back, before ?? '{}')
  await bench.run('osv')
  const third = await expectDelta(bench, 1, [first, second])
  expect(differences(third, [first]).get('rows/osv/osv-record-00001.jsonl')).toContain(
    JSON.stringify({ removed: gone }),
  )
  feed.change(1)
  await bench.run('osv')
  const interrupted = optionsFor(bench.dir, {
    since: '3',
    onProgress: ({ phase }) => {
      if (phase === 'check') throw new Error('interrupted')
    },
  })
  await expect(exportBundle(interrupted)).rejects.toThrow('interrupted')
  const fourth = rowsOf(bench)
  await expectDelta(bench, 3, [third, fourth])
  await expectDelta(bench, 1, [first, second, third, fourth])
})

longTest('a delta is the same to the byte where the change log was deleted', async () => {
  const bench = await mirror()
  await exportBundle(optionsFor(bench.dir))
  bench.sandbox.feed.change(20)
  bench.sandbox.feed.remove(3)
  await bench.run('osv')
  bench.store.checkpoint()
  const copy = join(scratch(), 'copy')
  cpSync(bench.dir, copy, { recursive: true })
  const db = openWriter(copy)
  db.exec('DELETE FROM change_name; DELETE FROM change_log')
  db.close()
  const made = await Promise.all(
    [bench.dir, copy].map((dir) => exportBundle(optionsFor(dir, { since: '1', now: () => NOW + 1000 }))),
  )
  const [one, other] = made.map(({ files: [path = ''] }) => readFileSync(path))
  expect(other).toEqual(one)
})
