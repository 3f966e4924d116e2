import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeAll, expect, onTestFinished } from 'vitest'
import { startFindings } from '../../../src/features/findings/start.ts'
import { createSignals } from '../../../src/daemon/signals.ts'
import { createFindingsKeeper } from '../../../src/features/findings/keeper.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { removeFindings } from '../../../src/store/findings/database.ts'
import { gateReads } from '../../../src/features/fleet/gated-reads.ts'
import { snapshotStamp } from '../../../src/store/pin.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { longTest, test } from '../../support/tables.ts'
import { type FindingsBench, affecting, openFindingsBench } from './fixtures.ts'

type Options = Parameters<typeof createFindingsKeeper>[0]

/** A keeper that waits for nothing; what it logged, and how often it began to judge. */
function keep(bench: FindingsBench, more: Partial<Options> = {}) {
  const logged: string[] = []
  const log = (_: object, text: string): void => void logged.push(text)
  const waiting = new Set<() => void>()
  let begun = 0
  const stamp = (): string => {
    begun++
    return snapshotStamp(bench.store)
  }
  const keeper = createFindingsKeeper({
    config: bench.config,
    reads: bench.store,
    settleMs: 0,
    retryMs: 1,
    log: { info: log, warn: log } as Options['log'],
    servedPin: { stamp, keepsBack: true, onMoved: () => undefined },
    onJudged: () => waiting.forEach((call) => call()),
    ...more,
  })
  onTestFinished(() => keeper.close())
  const judged = (): Promise<void> => new Promise((done) => waiting.add(done))
  return { ...keeper, logged, judged, begun: () => begun }
}

const made = Promise.withResolvers<FindingsBench>()

beforeAll(async () => {
  let end = (): Promise<void> => Promise.resolve()
  const bench = await openFindingsBench({}, (close) => (end = close))
  await bench.crawl()
  await bench.publish({})
  made.resolve(bench)
  return () => end()
})

/** The mirror of this file, with a catalog and records; its tags are not judged yet. */
async function unjudged(): Promise<FindingsBench> {
  const bench = await made.promise
  removeFindings(bench.dir)
  return bench
}

/** Keeps every judgement waiting until the returned function is called. */
function lockFindings(dir: string): () => void {
  const db = new Database(join(dir, 'derived', 'findings.db'))
  db.exec('BEGIN EXCLUSIVE')
  return () => void db.close()
}

/** The OSV snapshot and the catalog's, by which the tags are judged. */
const shown = ({ osv, catalog }: ReturnType<ReturnType<typeof keep>['report']>) => [osv, catalog]

longTest('a judgement that fails is tried again, is logged once, and leaves a status that says so', async () => {
  const bench = await unjudged()
  const path = join(bench.dir, 'derived', 'findings.db')
  mkdirSync(path)
  const keeper = keep(bench)
  keeper.look()
  await expect.poll(keeper.begun).toBeGreaterThan(2)
  expect(keeper.report()).toMatchObject({ state: 'none', failing: true, tags: 0 })
  expect(keeper.logged).toEqual([expect.stringMatching(/^the SBOMs .+ tried again$/)])
  const judged = keeper.judged()
  rmSync(path, { recursive: true })
  await judged
  expect(keeper.report()).toMatchObject({ state: 'current', failing: false, tags: 4, judged: 4 })
  expect(keeper.logged[1]).toContain('4 SBOMs were read')
})

longTest.each(['deleted', 'damaged'])(
  'a database that is %s while nothing is judged is noticed by the status, and made again',
  async (how) => {
    const bench = await unjudged()
    const keeper = keep(bench)
    const first = keeper.judged()
    keeper.look()
    await first
    await expect.poll(() => keeper.report().judging).toBe(false)
    expect(keeper.report().state).toBe('current')
    removeFindings(bench.dir)
    if (how === 'damaged') writeFileSync(join(bench.dir, 'derived', 'findings.db'), 'x'.repeat(8192))
    const again = keeper.judged()
    expect(keeper.report()).toMatchObject({ state: 'none', tags: 0 })
    await again
    expect(keeper.report()).toMatchObject({ state: 'current', tags: 4 })
  },
)

longTest('views that cannot be read fail a judgement, and neither the daemon nor its status', async () => {
  const bench = await unjudged()
  const path = join(bench.dir, 'derived', 'views', 'current-osv')
  renameSync(path, `${path}.aside`)
  mkdirSync(path)
  onTestFinished(() => {
    rmSync(path, { recursive: true })
    renameSync(`${path}.aside`, path)
  })
  const keeper = keep(bench)
  keeper.look()
  await expect.poll(keeper.begun).toBe(1)
  await expect.poll(() => keeper.report().judging).toBe(false)
  expect(keeper.report()).toMatchObject({ state: 'none', tags: 0 })
})

longTest('a keeper that is closed while it judges ends at once, and another one goes on', async () => {
  const bench = await unjudged()
  const keeper = keep(bench)
  keeper.look()
  await expect.poll(() => keeper.report().judging).toBe(true)
  await keeper.close()
  keeper.look()
  const next = keep(bench)
  const judged = next.judged()
  next.look()
  await judged
  expect(next.report()).toMatchObject({ state: 'current', judged: 4 })
  expect(bench.known()).toEqual(await bench.fresh())
  expect([keeper.begun(), keeper.logged]).toEqual([1, []])
})

longTest('without findings or query in views.serve no tag is judged', async () => {
  const bench = await unjudged()
  const { config } = bench
  const off = [
    keep(bench, { config: { ...config, match: { ...config.match, tags: false } } }),
    keep(bench, { config: { ...config, views: { ...config.views, query: false } } }),
  ]
  for (const one of off) one.look()
  const reads = openPinnedReads(bench.dir)
  if (reads === null) throw new Error('no database')
  onTestFinished(() => reads.close())
  const log = pino({ level: 'silent' })
  const options = { config: { ...config, views: { ...config.views, query: false } }, log, reads }
  const { shown } = startFindings({ ...options, signals: createSignals() })
  expect(shown?.findings).toBeUndefined()
  const on = keep(bench)
  const judged = on.judged()
  on.look()
  await judged // those before it would have begun earlier
  expect(off.map((one) => one.begun())).toEqual([0, 0])
})

longTest('what is published while a judgement is under way is judged after it, without another look', async () => {
  const bench = await unjudged()
  const keeper = keep(bench, { servedPin: undefined })
  const first = keeper.judged()
  const release = lockFindings(bench.dir) // else the judgement may end before what follows is published
  keeper.look()
  await bench.publish({ 'T-1': affecting('npm', 'none-has-this', null) })
  release()
  await first
  const osv = bench.store.snapshots.readSnapshot('osv')?.id
  await expect.poll(() => keeper.report().osv).toBe(osv)
  expect(keeper.report().state).toBe('current')
})

longTest(
  'what is damaged keeps the findings behind, is warned of once, and is read again until it is repaired',
  async () => {
    const bench = await unjudged()
    const db = new Database(join(bench.dir, 'mirror.db'))
    onTestFinished(() => void db.close())
    const chunks = db
      .prepare<[], { digest: string; number: number; bytes: Buffer }>('SELECT * FROM catalog_chunk')
      .all()
    const put = db.prepare('UPDATE catalog_chunk SET bytes = ? WHERE digest = ? AND number = ?')
    for (const { digest, number } of chunks) put.run(Buffer.alloc(8), digest, number)
    const keeper = keep(bench)
    keeper.look()
    await expect.poll(() => keeper.begun()).toBeGreaterThan(2)
    expect(keeper.report()).toMatchObject({ state: 'behind', judged: 0, failing: false })
    expect(keeper.logged.filter((text) => text.includes('doctor --data --repair'))).toHaveLength(1)
    for (const { digest, number, bytes } of chunks) put.run(bytes, digest, number)
    await expect.poll(() => keeper.report().state).toBe('current')
    expect(keeper.report().judged).toBeGreaterThan(0)
  },
)

test('a reader that keeps newer snapshots back judges by those that it serves, and by the newer once it serves them', async () => {
  const bench = await unjudged()
  await bench.judge()
  const opened = openPinnedReads(bench.dir)
  if (opened === null) throw new Error('no database')
  onTestFinished(() => opened.close())
  const gated = gateReads(opened)
  const keeper = keep(bench, { reads: gated.pinned, servedPin: gated.servedPin })
  const before = shown(keeper.report())
  bench.sandbox.service.addTag()
  await bench.crawl()
  expect(gated.refresh()).toBe(false)
  keeper.look()
  expect([keeper.report().state, shown(keeper.report())]).toEqual(['current', before])
  const judged = keeper.judged()
  gated.release(gated.newest())
  expect(gated.refresh()).toBe(true)
  expect(keeper.report().state).toBe('behind')
  keeper.look()
  await judged
  expect(keeper.report()).toMatchObject({ state: 'current', tags: 5 })
  expect(shown(keeper.report())).toEqual(bench.known().snapshots)
})

/** Has the mirror know what a signature came to; no snapshot is published for it. */
async function noteSignature(bench: FindingsBench, state: 'verified' | 'failed'): Promise<void> {
  const row = { path: '/v1/tags/t/vex', answer: '', basis: '', state, signer: null, reason: null, subject: null }
  await bench.store.exclusive(() => bench.store.catalog.putSignature({ ...row, isEnforced: true }, false))
}

longTest(
  'other results of signatures, and other rules, have the tags judged again although nothing was published',
  async () => {
    const bench = await unjudged()
    await bench.judge()
    const keeper = keep(bench)
    expect(keeper.report().state).toBe('current')
    const forget = (): Promise<void> => Promise.resolve(bench.forgetForm())
    for (const change of [() => noteSignature(bench, 'failed'), forget]) {
      await change()
      expect(keeper.report().state).toBe('behind')
      keeper.look()
      await expect.poll(() => keeper.report()).toMatchObject({ state: 'current', judging: false })
    }
    expect(keeper.begun()).toBe(2)
  },
)
