import { expect } from 'vitest'
import { type RunningWorker, startWorker } from '../../../src/base/threads/worker.ts'
import { longTest, test } from '../../support/tables.ts'

const LOCK = new URL('../../../src/base/threads/load-lock.ts', import.meta.url).href
const LIBRARY = import.meta.resolve('better-sqlite3')

/** The entry of a worker that sets its cell to 1, loads something, and sets the cell to 2. */
const loading = (statements: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { workerData } from 'node:worker_threads'
      import Database from ${JSON.stringify(LIBRARY)}
      import { loadCompiled } from ${JSON.stringify(LOCK)}
      loadCompiled(() => {
        Atomics.store(workerData, 0, 1)
        Atomics.notify(workerData, 0)
        ${statements}
        Atomics.store(workerData, 0, 2)
      })
      setInterval(() => {}, 1000)`)}`,
  )

/** Starts a worker; resolves once it loads. The second value of its cell is for what it waits for while it does. */
async function begun(file: URL): Promise<{ worker: RunningWorker<never>; cell: Int32Array }> {
  const cell = new Int32Array(new SharedArrayBuffer(8))
  const events = { onMessage: () => undefined, onEnd: () => undefined }
  const worker = startWorker<never, never>({ file, data: cell }, events)
  await Atomics.waitAsync(cell, 0, 0).value
  return { worker, cell }
}

test('a worker is terminated before or after it loads a compiled library, never while it does', async () => {
  const { worker, cell } = await begun(
    loading('while (Atomics.load(workerData, 1) === 0) Atomics.wait(workerData, 1, 0, 10)'),
  )
  expect(cell[0]).toBe(1)
  const ended = worker.terminate()
  setTimeout(() => Atomics.store(cell, 1, 1), 50)
  await ended
  expect(cell[0]).toBe(2)
})

longTest('two hundred workers are terminated about the time they load SQLite', async () => {
  const file = loading("new Database(':memory:').close()")
  for (let round = 0; round < 200; round++) {
    const { worker, cell } = await begun(file)
    const until = performance.now() + (round % 20) * 0.15
    while (performance.now() < until); // a timer is not exact enough
    await worker.terminate()
    expect(cell[0]).toBe(2)
  }
})
