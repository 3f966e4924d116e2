import { describe, expect, onTestFinished } from 'vitest'
import type { Progress } from '../../src/sync/context.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { acquireLock } from '../../src/store/database/lock.ts'
import { type SyncThread, startSyncThread } from '../../src/sync/thread.ts'
import { type Bench, differences } from '../support/mirror.ts'
import { ARCHIVE, INDEX, bench } from './fixtures.ts'
import { longTest, test } from '../support/tables.ts'

async function withThread(
  made: Bench,
  mayRun: () => boolean = () => true,
): Promise<{
  thread: SyncThread
  ended: Run[]
  failed: string[]
  postponed: string[]
  progress: Progress[]
}> {
  const ended: Run[] = []
  const failed: string[] = []
  const postponed: string[] = []
  const progress: Progress[] = []
  const thread = startSyncThread({
    config: made.config,
    version: 'test',
    mayRun,
    onEnded: (report) => void ended.push(report),
    onFailed: (_request, message) => void failed.push(message),
    onPostponed: ({ source, trigger }, message) => void postponed.push(`${source} ${trigger}: ${message}`),
    lockedRetryMs: 100,
    onProgress: (step) => void progress.push(step),
    onCheckpoint: () => undefined,
  })
  await thread.started
  return { thread, ended, failed, postponed, progress }
}

const SMALL = { records: 40, large: 0 }

describe('the sync thread', () => {
  longTest('runs the requested syncs beside the main thread', async () => {
    const made = await bench({ sandbox: SMALL })
    const { thread, ended, failed, progress } = await withThread(made)
    onTestFinished(() => thread.stop())
    thread.requestSync('osv', 'sync', 'command')
    thread.requestSync('feeds', 'sync', 'command')
    await expect.poll(() => ended.length, { interval: 5 }).toBe(2)
    expect(ended.map(({ state }) => state)).toEqual(['complete', 'complete'])
    expect(failed).toEqual([])
    expect(progress.map(({ phase }) => phase)).toContain('publish')
    expect(differences(made)).toEqual([])
  })

  longTest('tries a run again that found another process writing, but for one of an event', async () => {
    const made = await bench({ sandbox: SMALL })
    const { thread, ended, failed, postponed } = await withThread(made)
    onTestFinished(() => thread.stop())
    const lock = acquireLock(made.config.data.dir, 'sync')
    thread.requestSync('osv', 'sync', 'schedule')
    await expect.poll(() => postponed.length, { interval: 5 }).toBeGreaterThan(1)
    expect(new Set(postponed)).toEqual(new Set([expect.stringMatching(/^osv schedule: .*a repair is writing/)]))
    thread.requestSync('feeds', 'sync', 'webhook')
    await expect.poll(() => failed, { interval: 5 }).toEqual([expect.stringContaining('a repair is writing')])
    expect(ended).toEqual([])
    lock.release()
    await expect.poll(() => ended.map(({ state }) => state), { interval: 5 }).toEqual(['complete'])
    expect(failed).toHaveLength(1)
  })

  longTest('merges many requests into one more run of the most thorough kind', async () => {
    const made = await bench({ sandbox: SMALL })
    const { thread, ended } = await withThread(made)
    onTestFinished(() => thread.stop())
    for (let i = 0; i < 5; i++) thread.requestSync('osv', 'sync', 'schedule')
    thread.requestSync('osv', 'reconcile', 'schedule')
    for (let i = 0; i < 5; i++) thread.requestSync('osv', 'sync', 'schedule')
    await expect.poll(() => ended.length, { interval: 5 }).toBe(2)
    expect(ended.map(({ kind }) => kind)).toEqual(['sync', 'reconcile'])
    thread.requestSync('osv', 'sync', 'schedule')
    await expect.poll(() => ended.length, { interval: 5 }).toBe(3)
  })

  longTest('completes a run during checkpoints at any time', async () => {
    const made = await bench({ sandbox: { records: 150 } })
    const { thread, ended, failed, progress } = await withThread(made)
    onTestFinished(() => thread.stop())
    made.sandbox.faults.set(ARCHIVE, { kind: 'wrongCrc' })
    made.sandbox.faults.set(/ROOT-/, { kind: 'stall', ms: 200 })
    thread.requestSync('osv', 'sync', 'command')
    await expect.poll(() => progress.some(({ phase }) => phase === 'ingest'), { interval: 1 }).toBe(true)
    for (let i = 0; i < 20; i++) thread.checkpoint()
    await expect.poll(() => ended.length, { interval: 5 }).toBe(1)
    expect(failed).toEqual([])
    expect(ended).toMatchObject([{ state: 'complete' }])
  })

  longTest('aborts a run, and starts the next one when runs may start again', async () => {
    const made = await bench({ sandbox: SMALL })
    let mayRun = true
    const { thread, ended } = await withThread(made, () => mayRun)
    onTestFinished(() => thread.stop())
    made.sandbox.faults.set(INDEX, { kind: 'stall' })
    thread.requestSync('osv', 'sync', 'command')
    await expect.poll(() => made.sandbox.requests.count(INDEX), { interval: 2 }).toBe(1)
    mayRun = false
    thread.requestSync('osv', 'sync', 'command')
    thread.abort()
    await expect.poll(() => ended.length, { interval: 5 }).toBe(1)
    expect(ended).toMatchObject([{ state: 'stopped', code: 'aborted' }])
    expect(differences(made)).not.toEqual([])
    made.sandbox.faults.clear()
    mayRun = true
    thread.resume()
    await expect.poll(() => ended.length, { interval: 5 }).toBe(2)
    expect(ended[1]).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('ends at once when it is stopped, and its run is reported as aborted', async () => {
    const made = await bench({ sandbox: SMALL })
    const { thread, ended } = await withThread(made)
    made.sandbox.faults.set(INDEX, { kind: 'stall' })
    thread.requestSync('osv', 'sync', 'command')
    await expect.poll(() => made.sandbox.requests.count(INDEX), { interval: 2 }).toBe(1)
    await thread.stop()
    expect(ended).toMatchObject([{ state: 'stopped', code: 'aborted' }])
    expect(made.store.runs.listRuns(1)).toMatchObject([{ state: 'stopped', code: 'aborted' }])
  })

  longTest('reports which process is syncing', async () => {
    const made = await bench({ sandbox: SMALL })
    const { thread, ended, failed, postponed } = await withThread(made)
    onTestFinished(() => thread.stop())
    const stall = made.sandbox.faults.set(INDEX, { kind: 'stall' })
    const running = made.run('osv')
    await expect.poll(() => stall.hits(), { interval: 2 }).toBe(1)
    thread.requestSync('feeds', 'sync', 'command')
    await expect.poll(() => postponed.length, { interval: 2 }).toBeGreaterThan(0)
    expect(postponed[0]).toContain(`process ${process.pid}`)
    stall.clear()
    expect(await running).toMatchObject({ state: 'complete' })
    await expect.poll(() => ended.map(({ state }) => state), { interval: 5 }).toEqual(['complete'])
    expect(failed).toEqual([])
  })
})
