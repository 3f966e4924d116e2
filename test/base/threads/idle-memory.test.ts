import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, vi } from 'vitest'
import { collectHeap, createIdleCollection, heapBytes } from '../../../src/base/threads/idle-memory.ts'
import { longTest, test } from '../../support/tables.ts'

const MINUTE = 60_000

/** A thread whose figures a test sets, and the collections of its heap. */
function createThread() {
  const thread = { busy: 0, bytes: 60e6, at: 0, collections: 0 }
  const collection = createIdleCollection({
    busyShare: () => thread.busy,
    heapBytes: () => thread.bytes,
    collect() {
      thread.collections++
      thread.bytes = 20e6
    },
    now: () => thread.at,
  })
  const checked = (busy: number, at: number, bytes = thread.bytes): number => {
    Object.assign(thread, { busy, at, bytes })
    collection.check()
    return thread.collections
  }
  return { thread, checked, started: () => collection.started() }
}

test('the heap is collected when it has grown and the thread is idle, not more often than every ten minutes', () => {
  const { checked } = createThread()
  expect(checked(0.001, 0)).toBe(0)
  expect(checked(0.5, 1)).toBe(0) // busy: it must be idle for two checks again
  expect(checked(0.001, 2)).toBe(0)
  expect(checked(0.001, 3)).toBe(1)
  expect(checked(0.001, 11 * MINUTE, 22e6)).toBe(1) // not worth it
  expect(checked(0.5, 11 * MINUTE, 60e6)).toBe(1)
  expect(checked(0.001, 11 * MINUTE)).toBe(1)
  expect(checked(0.001, 11 * MINUTE)).toBe(2)
  expect(checked(0.001, 20 * MINUTE, 60e6)).toBe(2) // too soon
  expect(checked(0.001, 22 * MINUTE)).toBe(3)
})

test('the heap is collected after the start unless the thread is busy, and again as soon as a first run is over', () => {
  const { thread, checked, started } = createThread()
  thread.busy = 0.9
  started()
  expect(thread.collections).toBe(0)
  thread.busy = 0.2
  started()
  expect(thread.collections).toBe(1)
  checked(0.001, 1)
  expect(checked(0.001, 2)).toBe(1) // nothing has grown
  expect(checked(0.001, 3, 60e6)).toBe(2)
})

/** So many objects, some 30 bytes each. */
const fill = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))

longTest('a collection returns what the heap does not need', () => {
  vi.stubGlobal('gc', undefined) // the suite's own does nothing
  onTestFinished(() => void vi.unstubAllGlobals())
  const kept = { objects: fill(1_500_000) } // nothing else may refer to them, not even an assertion
  const before = heapBytes()
  kept.objects = []
  collectHeap()
  expect(heapBytes()).toBeLessThan(before - 30e6)
  expect(kept.objects).toEqual([])
})

/** Measures in a thread, whose heap is its own: the bytes before and after each call, of a heap that is filled and freed in between. */
const MEASURED = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { createLargeHeapCollection, heapBytes } = await import(workerData)
  const collect = createLargeHeapCollection()
  const fill = (count) => Array.from({ length: count }, (_, n) => ({ n }))
  const kept = { objects: [] }
  const steps = []
  for (const count of [100_000, 1_500_000, 300_000, 2_500_000]) {
    kept.objects = fill(count)
    const before = heapBytes()
    kept.objects = []
    collect()
    steps.push([before, heapBytes()])
  }
  parentPort.postMessage([steps, kept.objects])`

longTest('a large heap is collected, and again when it has grown', async () => {
  const source = new URL(`data:text/javascript,${encodeURIComponent(MEASURED)}`)
  const thread = new Worker(source, {
    workerData: new URL('../../../src/base/threads/idle-memory.ts', import.meta.url).href,
  })
  const [[steps]] = (await once(thread, 'message')) as [[[before: number, after: number][]]]
  await thread.terminate()
  const [small, large, less, grown] = steps.map(([before, after]) => before - after)
  expect(small).toBeLessThan(3e6)
  expect(large).toBeGreaterThan(30e6)
  expect(less).toBeLessThan(3e6)
  expect(grown).toBeGreaterThan(50e6)
})
