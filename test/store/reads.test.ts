import { describe, expect, onTestFinished, test } from 'vitest'
import { acquireLock } from '../../src/store/database/lock.ts'
import { gateReads } from '../../src/features/fleet/gated-reads.ts'
import { openShortReads } from '../../src/store/reads.ts'
import { NOW, START, reads, record, snapshot, writes } from './fixtures.ts'

describe('a pin', () => {
  test('sees one snapshot until it is moved, whatever others commit meanwhile', async () => {
    const store = writes()
    store.osv.insertRecord(record('R-1'), 1)
    store.snapshots.replaceSnapshot(snapshot({ id: 'aa' }))
    const reader = reads(store.dir)
    const { pinned, live } = reader
    const during = store.transaction(() => {
      store.osv.insertRecord(record('R-2'), 1)
      store.snapshots.replaceSnapshot(snapshot({ id: 'bb' }))
      expect([pinned.osv.countRecords(), live.osv.countRecords()]).toEqual([1, 1])
      expect(reader.refresh()).toBe(false)
      return Promise.resolve({ commit: true })
    })
    await during
    expect([pinned.osv.countRecords(), live.osv.countRecords()]).toEqual([1, 2])
    expect(pinned.snapshots.readSnapshot('osv')?.id).toBe('aa')
    expect(pinned.osv.readRecord('R-2')).toBeNull()
    expect(reader.refresh()).toBe(true)
    expect(pinned.osv.countRecords()).toBe(2)
    expect(pinned.snapshots.readSnapshot('osv')?.id).toBe('bb')
    expect(reader.refresh()).toBe(false)
  })

  test('is not moved by what was rolled back', async () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned } = reader
    await store.transaction(() => {
      store.osv.insertRecord(record('R-1'), 1)
      return Promise.resolve({ commit: false })
    })
    expect(reader.refresh()).toBe(false)
    expect(pinned.osv.countRecords()).toBe(0)
  })

  test('never blocks a writer, not even a checkpoint of the log', () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned } = reader
    for (let i = 0; i < 50; i++) store.osv.insertRecord(record(`R-${i}`, 'x'.repeat(5000)), 1)
    store.checkpoint()
    expect(pinned.osv.countRecords()).toBe(0)
    expect(reader.refresh()).toBe(true)
    store.checkpoint()
    reader.repin()
    expect(pinned.osv.countRecords()).toBe(50)
  })

  test('taken again stays at its snapshot when something was committed since', () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned } = reader
    store.osv.insertRecord(record('R-1'), 1)
    reader.repin()
    expect(pinned.osv.countRecords()).toBe(0)
    expect(reader.refresh()).toBe(true)
    expect(pinned.osv.countRecords()).toBe(1)
  })

  test('leaves the run log to be read as it is now', () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned, live } = reader
    const lock = acquireLock(store.dir, 'sync')
    onTestFinished(() => lock.release())
    store.runs.startRun({ ...START, startedAt: NOW })
    expect([pinned.runs.readLatestRun('osv'), live.runs.readLatestRun('osv')?.state]).toEqual([null, 'running'])
  })

  test('of one reader is not moved by another', () => {
    const store = writes()
    const one = reads(store.dir)
    const two = reads(store.dir)
    store.osv.insertRecord(record('R-1'), 1)
    expect(one.refresh()).toBe(true)
    expect([one.pinned.osv.countRecords(), two.pinned.osv.countRecords()]).toEqual([1, 0])
  })
})

describe('a gated pin', () => {
  /** A store with snapshot `aa`, gated reads of it, and a thread's connection. */
  function gated() {
    const store = writes()
    store.snapshots.replaceSnapshot(snapshot({ id: 'aa' }))
    const reader = gateReads(reads(store.dir))
    const thread = openShortReads(store.dir)
    if (thread === null) throw new Error('no database')
    const seenBy = (served: string) => thread.during(() => thread.reads.snapshots.readSnapshot('osv')?.id, served)
    const commit = (id: string): void => void store.snapshots.replaceSnapshot(snapshot({ id }))
    return { store, reader, thread, seenBy, commit, id: () => reader.pinned.snapshots.readSnapshot('osv')?.id }
  }

  test('moves only to the snapshots that were released, and tells them to other threads', () => {
    const { store, reader, thread, seenBy, commit, id } = gated()
    const stamps: string[] = []
    reader.servedPin.onMoved((stamp) => {
      stamps.push(stamp)
      thread.repin(stamp)
    })
    expect(seenBy(reader.servedPin.stamp())).toBe('aa')
    commit('bb')
    expect([reader.refresh(), id(), seenBy(reader.servedPin.stamp())]).toEqual([false, 'aa', 'aa'])
    const published = reader.newest()
    commit('cc')
    reader.release(published)
    expect([reader.refresh(), id()]).toEqual([false, 'aa']) // what was published is not the newest
    reader.repin()
    expect([id(), seenBy(reader.servedPin.stamp())]).toEqual(['aa', 'aa'])
    reader.release(reader.newest())
    expect([reader.refresh(), id(), stamps]).toEqual([true, 'cc', [reader.servedPin.stamp()]])
    expect(seenBy(reader.servedPin.stamp())).toBe('cc')
    store.runs.startRun({ ...START, startedAt: NOW })
    expect([reader.refresh(), id()]).toEqual([true, 'cc']) // no snapshot differs: the log can be copied
  })

  test('is not followed by a thread that came too late: it is not ready, and reads nothing else', () => {
    const { reader, seenBy, commit } = gated()
    commit('bb')
    expect(() => seenBy(reader.servedPin.stamp())).toThrow('try again')
    reader.release(reader.newest())
    reader.refresh()
    expect(seenBy(reader.servedPin.stamp())).toBe('bb')
  })
})
