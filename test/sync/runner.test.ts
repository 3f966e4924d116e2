import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { databasePath } from '../../src/store/database/open.ts'
import { openPinnedReads } from '../../src/store/reads.ts'
import { differences } from '../support/mirror.ts'
import { ARCHIVE, INDEX, RECORDS, bench, contentsOf, createClock, synced, tamper } from './fixtures.ts'
import { longTest, test } from '../support/tables.ts'

describe('every run leaves a row', () => {
  test('with its kind, its trigger, its cost and upstream’s date', async () => {
    const clock = createClock()
    const made = await bench({ now: clock.now, sandbox: { now: clock.now } })
    const report = await made.run('osv', { trigger: 'schedule' })
    expect(made.store.runs.readRun(report.id)).toEqual(report)
    expect(report).toMatchObject({
      source: 'osv',
      kind: 'sync',
      trigger: 'schedule',
      pid: process.pid,
      startedAt: clock.now(),
      endedAt: clock.now(),
      asOf: clock.now(),
      snapshot: made.store.snapshots.readSnapshot('osv')?.id,
      facts: { listed: 120, added: 120, records: 120, requests: 2, retries: 0 },
    })
  })

  test('also when it failed, with what it had learned', async () => {
    const made = await synced()
    made.sandbox.feed.change(100)
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 500 })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'failed', facts: { plannedChanged: 100 }, asOf: null })
    for (const done of ['added', 'changed', 'removed']) expect(report.facts).not.toHaveProperty(done)
    expect(report.snapshot).toBe(made.store.snapshots.readSnapshot('osv')?.id)
    expect(made.store.runs.readConfirmedAt('osv')).not.toBeNull()
  })

  test('that is open while it runs', async () => {
    const made = await synced()
    const reads = openPinnedReads(made.dir)
    made.sandbox.feed.change(1)
    const running = made.run('osv', {})
    await new Promise((resolve) => setImmediate(resolve))
    expect(reads?.live.runs.readLatestRun('osv')).toMatchObject({ state: 'running', endedAt: null })
    expect(await running).toMatchObject({ state: 'complete' })
    reads?.close()
  })

  test('and old rows are removed, except the last that published and those with an open quarantine', async () => {
    const made = await synced({ limits: { keepRuns: 3 } })
    made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex' }, { times: 1 })
    const { id } = await made.run('osv')
    made.sandbox.faults.set(INDEX, { kind: 'status', status: 500 })
    for (let i = 0; i < 5; i++) await made.run('osv')
    const published = id - 1
    expect(made.store.runs.listRuns(99).map((run) => run.id)).toEqual([id + 5, id + 4, id + 3, id, published])
  })
})

describe('a run that is stopped', () => {
  test.each([
    ['in the index', INDEX],
    ['in the archive', ARCHIVE],
  ])('%s commits nothing', async (_name, path) => {
    const made = await bench({ sandbox: { records: 60, large: 0 } })
    made.sandbox.faults.set(path, { kind: 'stall', at: 'body', bytes: 100 })
    const running = made.run('osv')
    await expect.poll(() => made.sandbox.requests.count(path), { interval: 2 }).toBe(1)
    made.abort()
    expect(await running).toMatchObject({ state: 'stopped', code: 'aborted' })
    expect(made.store.osv.countRecords()).toBe(0)
    expect(existsSync(join(made.dir, 'downloads', 'osv-all.zip'))).toBe(false)
  })

  test('among single records commits nothing', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    made.sandbox.feed.change(30)
    made.sandbox.faults.set(RECORDS, { kind: 'stall' }, { after: 10 })
    const running = made.run('osv')
    await expect.poll(() => made.sandbox.requests.count(RECORDS), { interval: 2 }).toBeGreaterThan(20)
    made.abort()
    expect(await running).toMatchObject({ state: 'stopped', code: 'aborted' })
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

test('a runner names the data folder that cannot have a folder of downloads', async () => {
  const made = await bench({})
  const file = databasePath(made.dir)
  const running = made.runWith({ PATCHMIRROR_DATA_DIR: file }, 'osv')
  await expect(running).rejects.toMatchObject({
    code: 'storage',
    message: expect.stringContaining(`the data folder ${file} is not a folder`) as string,
  })
})

describe('the sync lock', () => {
  test('is released when a run cannot begin', async () => {
    const made = await synced()
    tamper(made.dir, "UPDATE run SET ended_at = NULL, state = 'running'")
    tamper(made.dir, `CREATE TRIGGER no_orphans BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'refused'); END`)
    await expect(made.run('osv')).rejects.toThrow('refused')
    tamper(made.dir, 'DROP TRIGGER no_orphans')
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.store.runs.readRun(1)).toMatchObject({ state: 'failed', code: 'aborted' })
    const other = await bench({ dir: made.dir })
    expect(await other.run('feeds')).toMatchObject({ state: 'complete' })
  })

  longTest('is shared by both sources and kept until the last run has ended', async () => {
    const made = await bench({ sandbox: { records: 30, large: 0 } })
    const other = await bench({ dir: made.dir })
    const stall = made.sandbox.faults.set(INDEX, { kind: 'stall' })
    const running = made.run('osv')
    await made.run('feeds')
    await expect(other.run('feeds')).rejects.toMatchObject({ code: 'locked' })
    stall.clear()
    expect(await running).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expect(await other.run('feeds')).toMatchObject({ state: 'complete' })
  })
})
