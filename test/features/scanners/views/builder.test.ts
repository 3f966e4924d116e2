import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { loadQuick } from '../../../support/limits.ts'
import { derivedDir } from '../../../../src/store/database/open.ts'
import {
  VEX_FILE,
  type ViewsKind,
  generationDir,
  readCurrentViews,
  viewsDir,
} from '../../../../src/features/scanners/store/generations.ts'
import { acquireLock } from '../../../../src/store/database/lock.ts'
import { openPinnedReads } from '../../../../src/store/reads.ts'
import { openWrites } from '../../../../src/store/writes.ts'
import { createViewsBuilder } from '../../../../src/features/scanners/views/builder.ts'
import { performTask } from '../../../../src/features/scanners/views/task.ts'
import { openFilledStore } from '../../../support/filled-store.ts'
import { record } from './fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

/** Far longer than a test: what is retried after it is not retried in one. */
const NEVER = 3_600_000

/** A data folder with both kinds of views; its VEX repository lacks a document, and that is still damaged. */
async function openBench() {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-builder-'))
  const store = openFilledStore(dir)
  onTestFinished(() => {
    store.close()
    rmSync(dir, { recursive: true, force: true })
  })
  let records = 0
  const publishOsv = (): void => {
    const ids = Array.from({ length: ++records }, (_, number) => `R-${number}`)
    store.publishOsv(Object.fromEntries(ids.map((id) => [id, record(id, '2026-05-01', ['npm', id])])))
  }
  const publishCatalog = (id: string): void => {
    const writes = openWrites(dir)
    const stamps = { publishedAt: Date.now(), asOf: Date.now() }
    writes.snapshots.replaceSnapshot({ source: 'catalog', id, runId: 1, ...stamps, records: 1, whole: true })
    writes.close()
  }
  const setUnread = (unread: readonly string[]): void => {
    const folder = generationDir(dir, readCurrentViews(dir, 'vex')?.name ?? '')
    const path = join(folder, VEX_FILE)
    const info = JSON.parse(readFileSync(path, 'utf8')) as object
    writeFileSync(path, JSON.stringify({ ...info, unread }))
  }
  /** Takes the published archive away; returns what puts it back. */
  const hideArchive = (): (() => void) => {
    const files = readdirSync(derivedDir(dir)).filter((file) => file.startsWith('osv-'))
    const paths = files.map((file) => join(derivedDir(dir), file))
    for (const path of paths) renameSync(path, `${path}.aside`)
    return () => paths.forEach((path) => renameSync(`${path}.aside`, path))
  }
  publishOsv()
  publishCatalog('c1')
  for (const kind of ['osv', 'vex'] as const)
    await performTask({ dataDir: dir, kind, vendors: ['Root'], rebuild: false })
  setUnread(['ab'.repeat(32)])
  return { dir, publishOsv, publishCatalog, setUnread, hideArchive }
}

type Options = Parameters<typeof createViewsBuilder>[0]
type Bench = Awaited<ReturnType<typeof openBench>>

/** The builder of a process start; how many builds ended well, and what it warned of. */
function start({ dir }: Bench, times: Pick<Options, 'settleMs' | 'retryMs' | 'isRunning' | 'onFailed'>) {
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir, needsFile: () => false })
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('nothing is stored')
  const warned: string[] = []
  let ended = 0
  const warn = (_: object, text: string): void => void warned.push(text)
  const log = { info: () => undefined, warn } as unknown as Options['log']
  const builder = createViewsBuilder({
    config,
    reads: reads.live,
    ...times,
    log,
    onMade: () => ended++,
  })
  onTestFinished(async () => {
    await builder.close()
    reads.close()
  })
  const stateOf = (kind: ViewsKind) => builder.report().find((one) => one.kind === kind)
  return { ...builder, warned, ended: () => ended, stateOf }
}

const SOON = { interval: 20 }

longTest(
  'a VEX document that is still damaged is warned of once for each start, counted, and delays no new OSV snapshot',
  async () => {
    const bench = await openBench()
    const builder = start(bench, { settleMs: 0, retryMs: NEVER })
    builder.look()
    await expect.poll(builder.ended, SOON).toBe(1)
    expect(builder.stateOf('vex')).toMatchObject({ state: 'behind', unread: 1, making: false })
    expect(builder.stateOf('osv')).toMatchObject({ state: 'current', unread: null })
    expect(builder.warned).toEqual([expect.stringMatching(/missing .*: 1; .*doctor --data --repair/)])

    builder.look() // nothing is new
    await setTimeout(20)
    expect([builder.stateOf('vex')?.making, builder.ended()]).toEqual([false, 1])
    bench.publishOsv()
    expect(builder.stateOf('osv')?.state).toBe('behind')
    builder.look()
    await expect.poll(builder.ended, SOON).toBe(2)
    expect(builder.stateOf('osv')?.state).toBe('current')
    bench.publishCatalog('c2')
    builder.look()
    await expect.poll(builder.ended, SOON).toBe(3)
    expect(builder.stateOf('vex')).toMatchObject({ state: 'behind', snapshot: 'c2', unread: 1 })
    expect(builder.warned).toHaveLength(1)
    const again = start(bench, { settleMs: 0, retryMs: NEVER })
    again.look()
    await expect.poll(() => again.warned.length, SOON).toBe(1)
  },
)

longTest('a build waits for the end of the run whose snapshot it shows, unless a client waits for it', async () => {
  const bench = await openBench()
  bench.setUnread([])
  let isRunning = true
  const builder = start(bench, { settleMs: 0, retryMs: NEVER, isRunning: (kind) => kind === 'osv' && isRunning })
  bench.publishOsv()
  builder.look()
  await setTimeout(700)
  expect(builder.stateOf('osv')).toMatchObject({ state: 'behind', making: false })
  bench.publishCatalog('c2') // the other kind does not wait
  builder.look()
  await expect.poll(() => builder.stateOf('vex'), SOON).toMatchObject({ state: 'current', snapshot: 'c2' })
  expect(builder.stateOf('osv')).toMatchObject({ state: 'behind', making: false })
  isRunning = false
  await expect.poll(() => builder.stateOf('osv')?.state, SOON).toBe('current')
  isRunning = true
  bench.publishOsv()
  builder.look()
  builder.wanted()
  await expect.poll(() => builder.stateOf('osv')?.state, SOON).toBe('current')
})

longTest('what a client waits for while something is built is built next, although a run is under way', async () => {
  const bench = await openBench()
  bench.setUnread([])
  const builder = start(bench, { settleMs: 0, retryMs: NEVER, isRunning: (kind) => kind === 'vex' })
  bench.publishOsv()
  bench.publishCatalog('c2')
  builder.look()
  await expect.poll(() => builder.stateOf('osv')?.making, SOON).toBe(true)
  builder.wanted()
  await expect.poll(() => builder.stateOf('vex'), SOON).toMatchObject({ state: 'current', snapshot: 'c2' })
})

longTest(
  'views are retried after their pause, although they are looked at all the time, and a repaired document ends it',
  async () => {
    const bench = await openBench()
    const builder = start(bench, { settleMs: 100, retryMs: 150 })
    const looking = setInterval(() => builder.look(), 10)
    onTestFinished(() => clearInterval(looking))
    await expect.poll(builder.ended, SOON).toBeGreaterThan(1)
    bench.setUnread([])
    await expect.poll(() => builder.stateOf('vex'), SOON).toMatchObject({ state: 'current', unread: 0, making: false })
    expect(builder.warned).toHaveLength(1)
  },
)

longTest(
  'the VEX repository is made again where signatures come to something else, though nothing was published',
  async () => {
    const bench = await openBench()
    bench.setUnread([])
    const builder = start(bench, { settleMs: 0, retryMs: NEVER })
    expect(builder.stateOf('vex')).toMatchObject({ state: 'current', making: false })
    const writes = openWrites(bench.dir)
    const result = { path: '/v1/tags/t/vex', answer: '', basis: '', signer: null, reason: null, subject: null }
    writes.catalog.putSignature({ ...result, state: 'failed', isEnforced: true }, false)
    writes.close()
    expect(builder.stateOf('vex')).toMatchObject({ state: 'behind' })
    builder.look()
    await expect
      .poll(() => builder.stateOf('vex'), SOON)
      .toMatchObject({ state: 'current', snapshot: 'c1', making: false })
  },
)

longTest('a kind whose build fails delays no other, and is built at its next snapshot', async () => {
  const bench = await openBench()
  bench.setUnread([])
  bench.publishOsv()
  bench.hideArchive()
  const builder = start(bench, { settleMs: 0, retryMs: NEVER })
  builder.look()
  await expect.poll(() => builder.stateOf('osv')?.failing, SOON).toBe(true)
  expect(builder.warned).toEqual([expect.stringContaining('the bucket cannot be made')])
  bench.publishCatalog('c2')
  builder.look()
  await expect
    .poll(() => builder.stateOf('vex'), SOON)
    .toMatchObject({ state: 'current', snapshot: 'c2', making: false })
  expect(builder.stateOf('osv')).toMatchObject({ state: 'behind', failing: true })
  bench.publishOsv()
  builder.look()
  await expect.poll(() => builder.stateOf('osv'), SOON).toMatchObject({ state: 'current', failing: false })
})

longTest('a failed build has the published archive made again, and is tried again', async () => {
  const bench = await openBench()
  bench.setUnread([])
  bench.publishOsv()
  const putBack = bench.hideArchive()
  const builder = start(bench, { settleMs: 0, retryMs: 20, onFailed: putBack })
  builder.look()
  await expect.poll(() => builder.stateOf('osv'), SOON).toMatchObject({ state: 'current', failing: false })
  expect(builder.warned).toEqual([expect.stringContaining('the bucket cannot be made')])
})

test('a build that waits for another process is no failure', async () => {
  const bench = await openBench()
  bench.setUnread([])
  bench.publishOsv()
  const lock = acquireLock(bench.dir, 'views')
  const builder = start(bench, { settleMs: 0, retryMs: NEVER })
  builder.look()
  await expect.poll(() => builder.stateOf('osv')?.making, SOON).toBe(true)
  await expect.poll(() => builder.stateOf('osv')?.making, SOON).toBe(false)
  expect(builder.stateOf('osv')).toMatchObject({ state: 'behind', failing: false })
  lock.release()
  expect(builder.warned).toEqual([])
})

longTest('a build that failed is no failure any more once another process made what it was to make', async () => {
  const bench = await openBench()
  bench.setUnread([])
  bench.publishOsv()
  const putBack = bench.hideArchive()
  const builder = start(bench, { settleMs: 0, retryMs: NEVER })
  builder.look()
  await expect.poll(() => builder.stateOf('osv')?.failing, SOON).toBe(true)
  putBack()
  await performTask({ dataDir: bench.dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  expect(builder.stateOf('osv')).toMatchObject({ state: 'current', failing: false })
})

longTest(
  'views that cannot be read for another reason than damage are a failure with it, and end nothing',
  async () => {
    const bench = await openBench()
    bench.setUnread([])
    const pointer = join(viewsDir(bench.dir), 'current-osv')
    rmSync(pointer)
    mkdirSync(pointer)
    const builder = start(bench, { settleMs: 0, retryMs: NEVER })
    builder.look()
    await expect.poll(() => builder.stateOf('osv'), SOON).toMatchObject({ state: 'unreadable', failing: true })
    expect(builder.warned).toEqual([expect.stringMatching(/^views: the bucket cannot be made: .*current-osv/)])
    rmSync(pointer, { recursive: true })
    await performTask({ dataDir: bench.dir, kind: 'osv', vendors: ['Root'], rebuild: false })
    expect(builder.stateOf('osv')).toMatchObject({ state: 'current', failing: false })
  },
)
