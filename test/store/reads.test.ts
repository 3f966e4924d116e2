import { describe, expect, test } from 'vitest'
import { NOW, START, reads, record, snapshot, writes } from './fixtures.ts'

describe('a pin', () => {
  test('sees one moment until it is moved, whatever others commit meanwhile', async () => {
    const store = writes()
    store.insertRecord(record('R-1'), 1)
    store.replaceSnapshot(snapshot({ id: 'aa' }))
    const reader = reads(store.dir)
    const { pinned, live } = reader
    const during = store.transaction(() => {
      store.insertRecord(record('R-2'), 1)
      store.replaceSnapshot(snapshot({ id: 'bb' }))
      expect([pinned.countRecords(), live.countRecords()]).toEqual([1, 1])
      expect(reader.refresh()).toBe(false)
      return Promise.resolve({ commit: true })
    })
    await during
    expect([pinned.countRecords(), live.countRecords()]).toEqual([1, 2])
    expect(pinned.readSnapshot('osv')?.id).toBe('aa')
    expect(pinned.readRecord('R-2')).toBeNull()
    expect(reader.refresh()).toBe(true)
    expect(pinned.countRecords()).toBe(2)
    expect(pinned.readSnapshot('osv')?.id).toBe('bb')
    expect(reader.refresh()).toBe(false)
  })

  test('is not moved by what was rolled back', async () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned } = reader
    await store.transaction(() => {
      store.insertRecord(record('R-1'), 1)
      return Promise.resolve({ commit: false })
    })
    expect(reader.refresh()).toBe(false)
    expect(pinned.countRecords()).toBe(0)
  })

  test('never holds up a writer, not even one that copies the log', () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned } = reader
    for (let i = 0; i < 50; i++) store.insertRecord(record(`R-${i}`, 'x'.repeat(5000)), 1)
    store.checkpoint()
    expect(pinned.countRecords()).toBe(0)
    expect(reader.refresh()).toBe(true)
    store.checkpoint()
    reader.repin()
    expect(pinned.countRecords()).toBe(50)
  })

  test('taken anew stays at its moment when something was committed since', () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned } = reader
    store.insertRecord(record('R-1'), 1)
    reader.repin()
    expect(pinned.countRecords()).toBe(0)
    expect(reader.refresh()).toBe(true)
    expect(pinned.countRecords()).toBe(1)
  })

  test('beside it, the run log is read as it is now', () => {
    const store = writes()
    const reader = reads(store.dir)
    const { pinned, live } = reader
    store.startRun({ ...START, startedAt: NOW })
    expect([pinned.readLatestRun('osv'), live.readLatestRun('osv')?.state]).toEqual([
      null,
      'running',
    ])
  })

  test('of one reader is not moved by another', () => {
    const store = writes()
    const [one, two] = [reads(store.dir), reads(store.dir)]
    store.insertRecord(record('R-1'), 1)
    expect(one.refresh()).toBe(true)
    expect([one.pinned.countRecords(), two.pinned.countRecords()]).toEqual([1, 0])
  })
})
