import { describe, expect, test } from 'vitest'
import type { RunStart } from '../../../src/store/runs/runs.ts'
import { NOW, START, quarantine, runEnd, writes } from '../fixtures.ts'

describe('the run log', () => {
  test('tells a run that is running, and how it ended', () => {
    const store = writes()
    const id = store.startRun(START)
    const running = { id, ...START, pid: process.pid, state: 'running', endedAt: null, facts: {} }
    expect(store.readRun(id)).toMatchObject(running)
    expect(store.readLatestEndedRun('osv')).toBeNull()
    const end = runEnd({ asOf: NOW, snapshot: 'aa', message: 'done', facts: { n: 1, list: ['a'] } })
    store.endRun(id, end)
    expect(store.readRun(id)).toEqual({ id, ...START, pid: process.pid, ...end })
    expect(store.readLatestEndedRun('osv')?.id).toBe(id)
    expect(store.readRun(99)).toBeNull()
  })

  test('keeps the sources apart and lists the newest first', () => {
    const store = writes()
    const [osv, feeds] = [store.startRun(START), store.startRun({ ...START, source: 'feeds' })]
    expect(store.readLatestRun('osv')?.id).toBe(osv)
    expect(store.readLatestRun('feeds')?.id).toBe(feeds)
    expect(store.listRuns(10).map(({ id }) => id)).toEqual([feeds, osv])
    expect(store.listRuns(1).length).toBe(1)
  })

  test('remembers when upstream last confirmed what is held, later failures aside', () => {
    const store = writes()
    expect(store.readConfirmedAt('osv')).toBeNull()
    store.endRun(store.startRun(START), runEnd({ asOf: NOW }))
    store.endRun(store.startRun(START), runEnd({ state: 'failed', code: 'storage' }))
    store.endRun(store.startRun({ ...START, source: 'feeds' }), runEnd({ asOf: NOW + 5 }))
    expect(store.readConfirmedAt('osv')).toBe(NOW)
  })

  test('remembers the last reconcile that ended well', () => {
    const store = writes()
    const reconcile = { ...START, kind: 'reconcile' as const }
    expect(store.readLastReconcile(START.source)).toBeNull()
    store.endRun(store.startRun(reconcile), runEnd({ endedAt: NOW }))
    store.endRun(store.startRun(reconcile), runEnd({ endedAt: NOW + 1, state: 'partial' }))
    store.endRun(store.startRun(START), runEnd({ endedAt: NOW + 2 }))
    expect(store.readLastReconcile(START.source)).toBe(NOW)
  })

  test('closes every run that was left open, and no other', () => {
    const store = writes()
    const ended = store.startRun(START)
    store.endRun(ended, runEnd())
    const open = [store.startRun(START), store.startRun({ ...START, source: 'feeds' })]
    expect(store.closeOrphanRuns(NOW + 9)).toBe(2)
    for (const id of open) {
      expect(store.readRun(id)).toMatchObject({
        state: 'failed',
        code: 'aborted',
        endedAt: NOW + 9,
      })
    }
    expect(store.readRun(ended)?.state).toBe('complete')
    expect(store.closeOrphanRuns(NOW)).toBe(0)
  })

  test('is pruned to its newest rows for each source, open quarantines kept', () => {
    const store = writes()
    for (let i = 0; i < 10; i++) store.endRun(store.startRun(START), runEnd())
    const feeds = store.startRun({ ...START, source: 'feeds' })
    store.keepQuarantine(quarantine(2))
    store.keepQuarantine({ ...quarantine(3), path: '/external/patch_feed' })
    store.decideQuarantine(3, 'approved', NOW)
    store.pruneRuns('osv', 4)
    expect(store.listRuns(99).map(({ id }) => id)).toEqual([feeds, 10, 9, 8, 7, 2])
    store.pruneRuns('osv', 99)
    store.pruneRuns('feeds', 1)
    expect(store.listRuns(99).length).toBe(6)
  })

  test('keeps refreshes apart, which look at a part only', () => {
    const store = writes()
    const refresh: RunStart = { ...START, kind: 'refresh', trigger: 'webhook' }
    const sync = store.startRun(START)
    store.endRun(sync, runEnd({ asOf: NOW }))
    for (let i = 0; i < 5; i++) store.endRun(store.startRun(refresh), runEnd({ state: 'failed' }))
    store.pruneRuns('osv', 2)
    expect(store.listRuns(99).map(({ id }) => id)).toEqual([6, 5, sync])
    expect(store.readLatestEndedRun('osv')?.id).toBe(6)
    expect(store.readLatestWholeRun('osv')?.id).toBe(sync)
    expect(store.readConfirmedAt('osv')).toBe(NOW)
  })

  test('never gives an id twice, pruned or not', () => {
    const store = writes()
    const first = store.startRun(START)
    store.startRun(START)
    store.pruneRuns('osv', 1)
    expect(store.readRun(first)).toBeNull()
    expect(store.startRun(START)).toBe(3)
  })
})
