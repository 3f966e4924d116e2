import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished } from 'vitest'
import { applyBundle } from '../../../../src/features/bundles/import/apply.ts'
import { openBundle } from '../../../../src/features/bundles/import/open.ts'
import { refuseFullDisk } from '../../../../src/base/disk-space.ts'
import type { SourceName } from '../../../../src/base/domain/sources.ts'
import { acquireLock } from '../../../../src/store/database/lock.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { openPinnedReads } from '../../../../src/store/reads.ts'
import { type SummaryHeader, writeSummary } from '../../../../src/features/bundles/export/summary.ts'
import { isSoundVerdict } from '../../../../src/sync/verify/report.ts'
import { verifyStore } from '../../../../src/sync/verify/verify.ts'
import { catalogEnv } from '../../../support/catalog/mirror.ts'
import { type Bench, type BenchOptions, createBench } from '../../../support/mirror.ts'
import { type Below, below, carry, folder, serveFolder, signer } from '../air-gap.ts'
import { trust } from '../fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'
import { countCatalog, countSuperseded } from '../../../support/stored-counts.ts'

const ending: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ending.reverse()) await end()
})

async function above(options: BenchOptions, sources: readonly SourceName[]): Promise<Bench> {
  const bench = await createBench(options)
  ending.push(() => bench.close())
  for (const source of sources) await bench.run(source)
  return bench
}

/** Made once for all tests of this file: each takes it as the one before left it. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => (made ??= make())
}

const feedsAbove = once(() => above({ sandbox: { records: 12 } }, ['feeds', 'osv']))
const catalogAbove = once(() => {
  const service = { images: 2, tags: 3, packages: 2, tickets: 3 }
  const sandbox = { records: 5, service }
  return above({ sandbox, envOf: catalogEnv }, ['feeds', 'osv', 'catalog'])
})

async function needOf({ store, ...there }: Below): Promise<Buffer> {
  const carried = store.carried
  const held = carried.listStoredSources().map((source) => {
    const { id: snapshot, asOf, records } = store.snapshots.readSnapshot(source) ?? { id: '', asOf: 0, records: 0 }
    return [source, { digest: carried.digestOf(source), snapshot, asOf, records }]
  })
  const header: SummaryHeader = {
    format: 1,
    kind: 'patchmirror-summary',
    mirror: store.ledger.readIdentity(),
    brief: false,
    digest: there.digest(),
    createdAt: 0,
    imported: null,
    sources: Object.fromEntries(held) as SummaryHeader['sources'],
  }
  const chunks: Buffer[] = []
  for await (const chunk of writeSummary(carried, header)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('an imported delta', () => {
  longTest('leads to the same catalog when items swap places, are removed and are added', async () => {
    const bench = await catalogAbove()
    const there = below()
    const to = folder()
    const base = await carry(bench.dir, to)
    await there.take(base.files)
    const { service } = bench.sandbox
    const [first = '', second = ''] = service.ids('tags')
    service.addTag()
    service.remove('tags', first)
    service.rotateArtifact('tag', second, 'sbom')
    service.addTicket()
    await bench.run('catalog')
    const since = String(base.manifest.sequence)
    const { files, manifest } = await carry(bench.dir, to, { since })
    expect(manifest.kind).toBe('delta')
    const report = await there.take(files)
    expect(there.digest()).toBe(manifest.digest)
    expect(report.sources.map(({ source }) => source)).toEqual(['catalog'])
  })

  test('applies to the state of the need file, also to one that the mirror synced itself', async () => {
    const bench = await feedsAbove()
    const there = below()
    const to = folder()
    const self = await createBench({ dir: there.dir, sandbox: { records: 20 } })
    onTestFinished(() => self.close())
    for (const source of ['feeds', 'osv'] as const) await self.run(source)
    const { files, manifest } = await carry(bench.dir, to, { need: await needOf(there) })
    expect(manifest.kind).toBe('delta')
    await there.take(files, { allowRollback: true })
    expect(there.digest()).toBe(bench.store.carried.digestSources().digest)
    for (const path of ['/external/osv/all.json', '/external/osv/all.zip'])
      expect(there.store.feeds.readUpstreamState(path)).toBeNull()
    expect(there.store.osv.listSuspectIds()).toEqual([])
    const again = await self.run('osv') // goes on by itself from there, and finds its own upstream again
    expect(again).toMatchObject({ state: 'complete' })
    expect(self.index()?.equals(self.sandbox.feed.index())).toBe(true)
  })
})

describe('an import', () => {
  longTest(
    'that goes back, and each one after it, has later dates than all before: no client keeps other data by its date',
    async () => {
      const bench = await feedsAbove()
      const there = below()
      const to = folder()
      const older = await carry(bench.dir, to)
      await there.take(older.files)
      const ask = await serveFolder(there.dir, there.config)
      const [id = ''] = bench.sandbox.feed.change(2)
      await bench.run('osv')
      const newer = await carry(bench.dir, to)
      const paths = ['/external/osv/all.json', '/external/osv/all.zip', `/external/osv/${id}.json`]
      const rows = [() => there.take(newer.files), () => there.take(older.files, { allowRollback: true })]
      for (const take of [...rows, () => there.take(newer.files)]) {
        ask.look()
        const before = await Promise.all(paths.map((path) => ask(path)))
        const now = new Date(Date.now() + 20_000).toUTCString()
        const { held } = await take()
        ask.look()
        for (const [at, path] of paths.entries()) {
          const date = before[at]?.headers['last-modified'] ?? ''
          const after = await ask(path, { 'if-modified-since': date })
          expect([path, after.status]).toEqual([path, 200])
          expect(after.body.equals(before[at]?.body ?? after.body)).toBe(false)
          const own = after.headers['last-modified'] ?? ''
          expect(Date.parse(own)).toBeGreaterThan(Date.parse(date))
          expect((await ask(path, { 'if-modified-since': own })).status).toBe(304)
          expect((await ask(path, { 'if-modified-since': now })).status).toBe(200) // the date of a file that was fetched before
        }
        expect(held).toBe(there.digest()) // no date in a row is another one
      }
    },
  )

  longTest('serves the old snapshot until it has ended, and then notifies followers of the changes', async () => {
    const bench = await feedsAbove()
    const there = below()
    const to = folder()
    const base = await carry(bench.dir, to)
    await there.take(base.files)
    const pinned = openPinnedReads(there.dir)
    if (pinned === null) throw new Error('no database')
    onTestFinished(() => pinned.close())
    const ask = await serveFolder(there.dir, there.config)
    const changed = bench.sandbox.feed.change(2)
    const [gone = ''] = bench.sandbox.feed.remove(1)
    await bench.run('osv')
    const old = await ask('/external/osv/all.json')
    const during: string[] = []
    const delta = await carry(bench.dir, to, { since: String(base.manifest.sequence) })
    await there.take(delta.files, {
      progress: ({ phase }) => during.push(`${phase} ${String(pinned.refresh())}`),
    })
    expect(during.filter((one) => one.startsWith('prove'))).toEqual(['prove false'])
    expect(pinned.pinned.osv.readRecord(gone)).not.toBeNull()
    expect(pinned.refresh()).toBe(true)
    expect(pinned.pinned.osv.readRecord(gone)).toBeNull()
    ask.look()
    const fresh = await ask('/external/osv/all.json')
    expect(fresh.headers['x-mirror-snapshot']).not.toBe(old.headers['x-mirror-snapshot'])
    expect(fresh.body.equals(bench.sandbox.feed.index())).toBe(true)
    const last = String(old.headers['x-mirror-snapshot'])
    const told = JSON.parse((await ask(`/-/changes?since=${last}`)).body.toString()) as unknown
    const text = JSON.stringify(told)
    for (const id of [...changed, gone]) expect(text).toContain(id)
    const run = there.store.runs.readLatestRun('osv')
    expect(run).toMatchObject({ kind: 'import', state: 'complete' })
    expect(run?.facts['sequence']).toBe(delta.manifest.sequence)
    expect(run?.asOf).toBe(Date.parse(delta.manifest.sources.osv?.asOf ?? ''))
  })

  longTest('does not change sources that the bundle does not contain', async () => {
    const bench = await feedsAbove()
    const there = below()
    const to = folder()
    const base = await carry(bench.dir, to)
    await there.take(base.files)
    const feeds = there.store.snapshots.readSnapshot('feeds')
    bench.sandbox.feed.touchFeeds()
    bench.sandbox.feed.change(1)
    for (const source of ['feeds', 'osv'] as const) await bench.run(source)
    const only = await carry(bench.dir, to, { sources: ['osv'] })
    await there.take(only.files)
    expect(there.store.snapshots.readSnapshot('feeds')).toEqual(feeds)
    expect(there.store.carried.digestOf('osv')).toBe(bench.store.carried.digestOf('osv'))
    const all = await carry(bench.dir, to, { since: String(base.manifest.sequence) })
    await there.take(all.files)
    expect(there.digest()).toBe(bench.store.carried.digestSources().digest)
  })

  longTest('reports in a dry run what it would change, and changes nothing', async () => {
    const bench = await catalogAbove()
    const there = below()
    const { files } = await carry(bench.dir, folder())
    const report = await there.take(files, { dryRun: true })
    expect(report.outcome).toBe('dry run')
    expect(report.sources.find(({ source }) => source === 'osv')?.changed).toMatchObject({
      'osv-record': { put: bench.store.osv.countRecords(), removed: 0 },
    })
    const catalog = report.sources.find(({ source }) => source === 'catalog')
    const { documents } = countCatalog(bench.dir)
    expect(catalog?.changed['catalog-document']).toEqual({ put: documents, removed: 0 })
    expect(there.store.carried.listStoredSources()).toEqual([])
    expect(countCatalog(there.dir)).toEqual({ entries: 0, answers: 0, documents: 0 })
    expect(there.store.runs.listRuns(10)).toEqual([])
    expect(readdirSync(join(there.dir, 'derived'))).toEqual([])
  })

  longTest('that was interrupted continues with the documents that it has stored', async () => {
    const bench = await catalogAbove()
    const there = below()
    const { files } = await carry(bench.dir, folder())
    const read: string[] = []
    const once = async (stopAt: number): Promise<void> => {
      const bundle = await openBundle(files, trust([signer()], { now: Date.now }))
      const { config, store } = there
      const streamContent: typeof bundle.streamContent = (name) => {
        if (read.length === stopAt) throw new Error('the power is gone')
        read.push(name)
        return bundle.streamContent(name)
      }
      const common = { config, store, file: 'x', trigger: 'command', now: Date.now } as const
      try {
        await applyBundle({ ...common, bundle: { ...bundle, streamContent } })
      } finally {
        await bundle.close()
      }
    }
    await expect(once(3)).rejects.toThrow('the power is gone')
    expect(there.store.carried.listStoredSources()).toEqual([])
    expect(there.store.runs.readLatestRun('osv')).toMatchObject({ state: 'failed' })
    await once(-1)
    expect(there.digest()).toBe(bench.store.carried.digestSources().digest)
    expect(new Set(read).size).toBe(read.length)
  })

  longTest('of the same state updates the time at which upstream was asked', async () => {
    let now = Date.now() - 8_000_000
    const bench = await createBench({ sandbox: { records: 5, now: () => now } })
    onTestFinished(() => bench.close())
    for (const source of ['feeds', 'osv'] as const) await bench.run(source)
    const there = below()
    const to = folder()
    await there.take((await carry(bench.dir, to)).files)
    const before = there.store.runs.readConfirmedAt('osv') ?? 0
    now += 7_200_000
    for (const source of ['feeds', 'osv'] as const) await bench.run(source)
    const again = await carry(bench.dir, to)
    expect(again.manifest.sequence).toBe(1)
    expect((await there.take(again.files)).outcome).toBe('same')
    expect((there.store.runs.readConfirmedAt('osv') ?? 0) - before).toBeGreaterThan(3_600_000)
  })

  longTest('with --again writes everything again, and repairs damage', async () => {
    const bench = await catalogAbove()
    const there = below()
    const to = folder()
    const { files, manifest } = await carry(bench.dir, to)
    await there.take(files)
    const db = openWriter(there.dir)
    onTestFinished(() => void db.close())
    db.exec("UPDATE osv_body SET bytes = x'00'; UPDATE catalog_answer SET body = x'00'")
    db.exec("UPDATE catalog_chunk SET bytes = x'00'; UPDATE document SET body = x'00'")
    expect(isSoundVerdict(await verifyStore(db, there.dir))).toBe(false)
    expect((await there.take(files, { again: true })).outcome).toBe('applied')
    expect(await verifyStore(db, there.dir)).toMatchObject({ damagedRecords: [], damagedVersions: [] })
    expect(isSoundVerdict(await verifyStore(db, there.dir))).toBe(true)
    expect(there.digest()).toBe(manifest.digest)
    expect(countSuperseded(there.dir)).toMatchObject({ versions: 0, bodies: 0 })
  })

  test('is refused before anything is written when the disk is too small', async () => {
    const dir = folder()
    await expect(refuseFullDisk(dir, 2 ** 60)).rejects.toThrow(/are needed in .*, and \d+ MB are free/)
    await expect(refuseFullDisk(dir, 1)).resolves.toBeUndefined()
  })

  longTest('does not wait: another process that writes to the folder is named', async () => {
    const bench = await feedsAbove()
    const { files } = await carry(bench.dir, folder())
    const there = below()
    const lock = acquireLock(there.dir, 'sync')
    expect(await there.refuses(files)).toMatch(/a repair is writing/)
    lock.release()
    expect((await there.take(files)).outcome).toBe('applied')
  })
})
