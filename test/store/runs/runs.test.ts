import { describe, expect, onTestFinished, test } from 'vitest'
import { acquireLock } from '../../../src/store/database/lock.ts'
import type { RunStart } from '../../../src/store/runs/runs.ts'
import { NOW, START, quarantine, reads, runEnd, snapshot, writes } from '../fixtures.ts'

describe('the run log', () => {
  test('shows a current run, and how it ended', () => {
    const store = writes()
    const lock = acquireLock(store.dir, 'sync')
    onTestFinished(() => lock.release())
    const id = store.runs.startRun(START)
    const running = { id, ...START, pid: process.pid, state: 'running', endedAt: null, facts: {} }
    expect(store.runs.readRun(id)).toMatchObject(running)
    expect(store.runs.readLatestEndedRun('osv')).toBeNull()
    const end = runEnd({ asOf: NOW, snapshot: 'aa', message: 'done', facts: { n: 1, list: ['a'] } })
    store.runs.endRun(id, end)
    expect(store.runs.readRun(id)).toEqual({ id, ...START, pid: process.pid, ...end })
    expect(store.runs.readLatestEndedRun('osv')?.id).toBe(id)
    expect(store.runs.readRun(99)).toBeNull()
  })

  test('shows a run that has ended, also where a reader still sees the state before', () => {
    const store = writes()
    const lock = acquireLock(store.dir, 'sync')
    const id = store.runs.startRun(START)
    const { pinned } = reads(store.dir)
    expect(pinned.runs.readLatestRun('osv')).toMatchObject({ id, state: 'running' })
    store.runs.endRun(id, runEnd({ message: 'done' }))
    lock.release()
    expect(pinned.runs.readLatestRun('osv')).toMatchObject({ id, state: 'complete', message: 'done' })
  })

  test('separates the sources and lists the newest run first', () => {
    const store = writes()
    const osv = store.runs.startRun(START)
    const feeds = store.runs.startRun({ ...START, source: 'feeds' })
    expect(store.runs.readLatestRun('osv')?.id).toBe(osv)
    expect(store.runs.readLatestRun('feeds')?.id).toBe(feeds)
    expect(store.runs.listRuns(10).map(({ id }) => id)).toEqual([feeds, osv])
    expect(store.runs.listRuns(1).length).toBe(1)
  })

  test('has the last time when upstream confirmed the stored data, also after later failures', () => {
    const store = writes()
    expect(store.runs.readConfirmedAt('osv')).toBeNull()
    store.runs.endRun(store.runs.startRun(START), runEnd({ asOf: NOW }))
    store.runs.endRun(store.runs.startRun(START), runEnd({ state: 'failed', code: 'storage' }))
    store.runs.endRun(store.runs.startRun({ ...START, source: 'feeds' }), runEnd({ asOf: NOW + 5 }))
    expect(store.runs.readConfirmedAt('osv')).toBe(NOW)
  })

  test('has no date in the future of a later confirmation, as that of a clock that was ahead', () => {
    const store = writes()
    const year = 365 * 86_400_000
    const confirm = (asOf: number, endedAt: number): void =>
      store.runs.endRun(store.runs.startRun(START), runEnd({ asOf, endedAt }))
    confirm(NOW + year, NOW + year + 1000)
    expect(store.runs.readAsOf('osv', { asOf: NOW + year, runId: 1 })).toBe(NOW + year)
    confirm(NOW, NOW + 1000)
    expect(store.runs.readConfirmedAt('osv')).toBe(NOW)
    expect(store.runs.readAsOf('osv', { asOf: NOW + year, runId: 1 })).toBe(NOW)
    const later = { asOf: NOW + year, runId: 3 } // published after that confirmation
    expect(store.runs.readAsOf('osv', later)).toBe(NOW + year)
    confirm(NOW - 60_000, NOW + 2000) // as from a cache of upstream's
    expect(store.runs.readConfirmedAt('osv')).toBe(NOW)
    store.runs.endRun(store.runs.startRun(START), runEnd({ state: 'failed', code: 'storage' }))
    expect(store.runs.readAsOf('osv', { asOf: NOW + 60_000, runId: 1 })).toBe(NOW + 60_000)
  })

  test('has the last successful reconcile', () => {
    const store = writes()
    const reconcile = { ...START, kind: 'reconcile' as const }
    expect(store.runs.readLastReconcile(START.source)).toBeNull()
    store.runs.endRun(store.runs.startRun(reconcile), runEnd({ endedAt: NOW }))
    store.runs.endRun(store.runs.startRun(reconcile), runEnd({ endedAt: NOW + 1, state: 'partial' }))
    store.runs.endRun(store.runs.startRun(START), runEnd({ endedAt: NOW + 2 }))
    expect(store.runs.readLastReconcile(START.source)).toBe(NOW)
  })

  test('has the date of the last success, not one that a clock which was ahead gave to an earlier run', () => {
    const store = writes()
    const reconcile = { ...START, kind: 'reconcile' as const }
    for (const endedAt of [NOW + 9_000_000, NOW]) store.runs.endRun(store.runs.startRun(reconcile), runEnd({ endedAt }))
    expect(store.runs.readLastReconcile(START.source)).toBe(NOW)
    expect(store.runs.readLastSuccess(START.source)).toBe(NOW)
  })

  test('closes every run that was left open, and no other', () => {
    const store = writes()
    const ended = store.runs.startRun(START)
    store.runs.endRun(ended, runEnd())
    const open = [store.runs.startRun(START), store.runs.startRun({ ...START, source: 'feeds' })]
    expect(store.runs.closeOrphanRuns(NOW + 9)).toBe(2)
    for (const id of open) {
      expect(store.runs.readRun(id)).toMatchObject({
        state: 'failed',
        code: 'aborted',
        endedAt: NOW + 9,
      })
    }
    expect(store.runs.readRun(ended)?.state).toBe('complete')
    expect(store.runs.closeOrphanRuns(NOW)).toBe(0)
  })

  test('counts the last runs that ended with their process, of one source', () => {
    const store = writes()
    const counts: number[] = []
    const lose = (source: 'osv' | 'feeds'): void => {
      store.runs.startRun({ ...START, source })
      store.runs.closeOrphanRuns(NOW)
      counts.push(store.runs.countLost('osv'))
    }
    lose('osv')
    lose('feeds')
    lose('osv')
    store.runs.endRun(store.runs.startRun(START), { ...runEnd(), state: 'failed', code: 'upstream_status' })
    lose('feeds')
    lose('osv')
    expect(counts).toEqual([1, 1, 2, 0, 1])
  })

  test('says of a run whose process ended whether it had published', () => {
    const store = writes()
    const open = [store.runs.startRun(START), store.runs.startRun(START)]
    store.snapshots.replaceSnapshot(snapshot({ runId: open[1] ?? 0 }))
    const told = (): unknown[] => open.map((id) => store.runs.readRun(id)?.message)
    const expected = [
      'the process or its sync thread ended before the run did; nothing was committed',
      'the process or its sync thread ended before the run did, after it had published',
    ]
    expect(told()).toEqual(expected)
    store.runs.closeOrphanRuns(NOW)
    expect(told()).toEqual(expected)
  })

  test('finds as running only what runs now, and what was killed as failed', () => {
    const store = writes()
    const find = (state: 'running' | 'failed' | ''): number[] => {
      const filter = { before: 99, source: '', kind: '', state, limit: 9 } as const
      const found = store.runs.findRuns(filter)
      if (state !== '') expect(found.filter((run) => run.state !== state)).toEqual([])
      return found.map(({ id }) => id)
    }
    const failed = store.runs.startRun(START)
    store.runs.endRun(failed, runEnd({ state: 'failed' }))
    const open = store.runs.startRun(START)
    expect([find('running'), find('failed')]).toEqual([[], [open, failed]])
    const lock = acquireLock(store.dir, 'sync')
    onTestFinished(() => lock.release())
    expect([find('running'), find('failed'), find('')]).toEqual([[open], [failed], [open, failed]])
  })

  test('is pruned to its newest rows for each source, open quarantines kept', () => {
    const store = writes()
    for (let i = 0; i < 10; i++) store.runs.endRun(store.runs.startRun(START), runEnd())
    const feeds = store.runs.startRun({ ...START, source: 'feeds' })
    store.quarantine.keepQuarantine(quarantine(2))
    store.quarantine.keepQuarantine({ ...quarantine(3), path: '/external/patch_feed' })
    store.quarantine.decideQuarantine(3, 'approved', NOW)
    store.runs.pruneRuns('osv', 4)
    expect(store.runs.listRuns(99).map(({ id }) => id)).toEqual([feeds, 10, 9, 8, 7, 2])
    store.runs.pruneRuns('osv', 99)
    store.runs.pruneRuns('feeds', 1)
    expect(store.runs.listRuns(99).length).toBe(6)
  })

  test('counts refreshes apart from complete syncs', () => {
    const store = writes()
    const refresh: RunStart = { ...START, kind: 'refresh', trigger: 'webhook' }
    const sync = store.runs.startRun(START)
    store.runs.endRun(sync, runEnd({ asOf: NOW }))
    for (let i = 0; i < 5; i++) store.runs.endRun(store.runs.startRun(refresh), runEnd({ state: 'failed' }))
    store.runs.pruneRuns('osv', 2)
    expect(store.runs.listRuns(99).map(({ id }) => id)).toEqual([6, 5, sync])
    expect(store.runs.readLatestEndedRun('osv')?.id).toBe(6)
    expect(store.runs.readLatestWholeRun('osv')?.id).toBe(sync)
    expect(store.runs.readConfirmedAt('osv')).toBe(NOW)
  })

  test('never uses an id twice, also after pruning', () => {
    const store = writes()
    const first = store.runs.startRun(START)
    store.runs.startRun(START)
    store.runs.pruneRuns('osv', 1)
    expect(store.runs.readRun(first)).toBeNull()
    expect(store.runs.startRun(START)).toBe(3)
  })
})
