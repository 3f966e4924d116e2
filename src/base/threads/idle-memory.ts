import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** What is known of this thread, and what can be done about its memory. */
interface ThreadMemory {
  /** Returns the share of time since the last call in which the event loop was busy, 0 to 1. */
  readonly busyShare: () => number
  /** Returns the bytes of the heap that are in memory. */
  readonly heapBytes: () => number
  /** Returns everything that the heap does not need to the system. */
  readonly collect: () => void
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

/** When the heap is collected after the start of a thread, milliseconds. */
const START_MS = 1_000
/** Share of the time since the start above which a thread has so much to do that this is left out. */
const BUSY_SHARE = 0.5
/** Interval of checks, milliseconds. */
const CHECK_MS = 10_000
/** Checks in a row that find the thread idle, before the heap is collected. */
const IDLE_CHECKS = 2
/** Share of time below which a thread is idle: its own timers take less, a request every second as well. */
const IDLE_SHARE = 0.01
/** Growth of the heap since the last collection that is worth another one, bytes. */
const LEAST_GROWTH = 3e6
/** Shortest time between two collections, milliseconds: each stops the thread for about a tenth of a second. */
const PAUSE_MS = 600_000

/**
 * Returns the collections of a thread. V8 does not make them by itself: an idle thread allocates nothing, and only an
 * allocation can cause one.
 */
export function createIdleCollection(thread: ThreadMemory) {
  let idleChecks = 0
  let bytesAfter = 0
  let collectedAt = -Infinity
  const collect = (): void => {
    thread.collect()
    bytesAfter = thread.heapBytes()
  }
  return {
    /** To be called once, soon after the start: collects what the start left, before a first run adds to it. */
    started(): void {
      if (thread.busyShare() < BUSY_SHARE) collect()
    },
    /** To be called at intervals: collects the heap once it has grown and the thread has become idle. */
    check(): void {
      idleChecks = thread.busyShare() < IDLE_SHARE ? idleChecks + 1 : 0
      if (idleChecks < IDLE_CHECKS || thread.now() - collectedAt < PAUSE_MS) return
      if (thread.heapBytes() - bytesAfter < LEAST_GROWTH) return
      collect()
      collectedAt = thread.now()
    },
  }
}

/**
 * Starts collecting the heap of this thread after its start and whenever it is idle, until the thread ends or the returned
 * function is called.
 */
export function collectWhenIdle(): () => void {
  let before = performance.eventLoopUtilization()
  const collection = createIdleCollection({
    busyShare() {
      const { utilization } = performance.eventLoopUtilization(before)
      before = performance.eventLoopUtilization()
      return utilization
    },
    heapBytes,
    collect: collectHeap,
    now: () => performance.now(),
  })
  const timers = [setTimeout(() => collection.started(), START_MS), setInterval(() => collection.check(), CHECK_MS)]
  for (const timer of timers) timer.unref()
  return () => timers.forEach(clearTimeout)
}

/** Returns the bytes of this thread's heap that are in memory. */
export function heapBytes(): number {
  return getHeapStatistics().total_physical_size
}

/** Heap below which a long run does not collect it, bytes. */
const LARGE_HEAP = 50e6
/** Growth since the last collection from which another one is worth its time. */
const LARGE_GROWTH = 1.4

/** How long a run may rely on what a collection before it left, milliseconds: later, other things are in use. */
const TRUSTED_MS = 10_000

/** The last collection of this thread's heap: when, and the bytes that it left. */
let last = { at: -Infinity, leftBytes: 0 }

/**
 * Returns for a run what collects this thread's heap if it is large and has grown. For a long run of small answers, now and
 * then and before the step that needs the most memory beside the heap: V8 lets garbage wait until it is as large as what is in use.
 */
export function createLargeHeapCollection(): () => void {
  let bytesAfter = performance.now() - last.at < TRUSTED_MS ? last.leftBytes : 0
  return () => {
    if (heapBytes() <= Math.max(LARGE_HEAP, LARGE_GROWTH * bytesAfter)) return
    collectHeap()
    bytesAfter = last.leftBytes
  }
}

/**
 * Collects this thread's heap as V8 does when memory runs out, which also makes its young generation small again. Does nothing
 * where V8 does not offer it at run time.
 */
export function collectHeap(): void {
  const gc = globalThis.gc ?? offeredGc()
  gc?.({ type: 'major', flavor: 'last-resort', execution: 'sync' })
  last = { at: performance.now(), leftBytes: heapBytes() }
}

/**
 * Makes V8 offer its collector and returns it: only contexts that are created from now on have it. The flag belongs to the
 * process and stays, else a thread that collects at the same time could be without it.
 */
function offeredGc(): NodeJS.GCFunction | undefined {
  setFlagsFromString('--expose-gc')
  return runInNewContext('globalThis.gc') as NodeJS.GCFunction | undefined
}
