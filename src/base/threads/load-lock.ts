import { getEnvironmentData, isMainThread, setEnvironmentData, type Worker } from 'node:worker_threads'

/** Environment data of all threads: a cell of shared memory with one of the values below. */
const KEY = 'patchmirror.loadLock'
const FREE = 0
const TAKEN = 1
/** Longest wait for the lock, milliseconds: far longer than a load takes; a thread that died with the lock stops others no longer than that. */
const LONGEST_WAIT_MS = 5_000
/** Longest time between two looks at the lock, milliseconds. */
const LOOK_MS = 100

/** Returns the cell of the lock. The first call must be on the main thread or before a worker is started; workers inherit it. */
function cellOf(): Int32Array<SharedArrayBuffer> {
  const stored = getEnvironmentData(KEY)
  if (stored instanceof SharedArrayBuffer) return new Int32Array(stored)
  const made = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  setEnvironmentData(KEY, made)
  return new Int32Array(made)
}

const isTaken = (cell: Int32Array<SharedArrayBuffer>): boolean => Atomics.compareExchange(cell, 0, FREE, TAKEN) === FREE

function release(cell: Int32Array<SharedArrayBuffer>): void {
  Atomics.store(cell, 0, FREE)
  Atomics.notify(cell, 0)
}

/** Creates the lock, so that workers which are started from now on inherit it. */
export function prepareLoadLock(): void {
  cellOf()
}

/**
 * Loads a compiled library in this worker while no worker is being terminated. A worker that is terminated while it loads one
 * ends the whole process (SIGABRT), since the library cannot create its functions any more. On the main thread, which nothing
 * terminates, the library is left to load itself at its first use.
 */
export function loadCompiled(load: () => void): void {
  if (isMainThread) return
  const cell = cellOf()
  const until = performance.now() + LONGEST_WAIT_MS
  let owned = isTaken(cell)
  while (!owned && performance.now() < until) {
    Atomics.wait(cell, 0, TAKEN, LOOK_MS)
    owned = isTaken(cell)
  }
  try {
    load()
  } finally {
    if (owned) release(cell)
  }
}

/** Terminates a worker while no thread loads a compiled library. Resolves when it has ended. */
export async function terminateSafely(worker: Worker): Promise<void> {
  const cell = cellOf()
  const until = performance.now() + LONGEST_WAIT_MS
  let owned = isTaken(cell)
  while (!owned && performance.now() < until) {
    await Atomics.waitAsync(cell, 0, TAKEN, LOOK_MS).value
    owned = isTaken(cell)
  }
  try {
    await worker.terminate()
  } finally {
    if (owned) release(cell)
  }
}
