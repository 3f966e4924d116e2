import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import { type StopMessage, type Supervisor, supervise } from '../../../src/base/threads/supervisor.ts'

type ToEcho = { readonly type: 'echo'; readonly text: string } | { readonly type: 'throw' | 'deaf' | 'ill' }
interface FromEcho {
  readonly type: 'echoed'
  readonly text: string
}

/** A worker that starts with `begin`, echoes texts, throws when asked to, says that it stops, and ends; `deaf` ones do not end. */
function workerOf(begin: string): URL {
  const source = `
    import { parentPort as port, workerData } from 'node:worker_threads'
    ${begin}
    let onStop = 'end'
    port.on('message', (message) => {
      if (message.type === 'echo') return port.postMessage({ type: 'echoed', text: message.text })
      if (message.type === 'throw') throw new Error('thrown by the worker')
      if (message.type !== 'stop') return void (onStop = message.type)
      port.postMessage({ type: 'echoed', text: 'stop' })
      if (onStop === 'ill') throw new Error('thrown at the end')
      if (onStop !== 'deaf') port.close()
    })`
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`)
}

const READY = "port.postMessage({ type: 'ready' })"
const REFUSED = "port.postMessage({ type: 'refused', code: 'storage', message: 'no database' }); process.exit()"

interface Watched extends Supervisor<ToEcho | StopMessage> {
  readonly seen: string[]
  /** How many workers were started. */
  readonly starts: () => number
}

interface Manner {
  readonly mustStart?: boolean
  readonly data?: unknown
  readonly restartMs?: number
  readonly stopTimeoutMs?: number
}

function start(begin: string, manner: Manner = {}): Watched {
  const { mustStart = false, data = null, restartMs = 1, stopTimeoutMs = 5000 } = manner
  const seen: string[] = []
  let starts = 0
  const supervisor = supervise<ToEcho | StopMessage, FromEcho>({
    file: workerOf(begin),
    data() {
      starts += 1
      return data
    },
    restartMs,
    mustStart,
    stopTimeoutMs,
    onMessage: ({ text }) => seen.push(`echoed ${text}`),
    onReady: (isRestart) => seen.push(isRestart ? 'ready again' : 'ready'),
    onFailed: (message, wasReady) => seen.push(`failed: ${message} (${String(wasReady)})`),
    onEnded: (failure) => seen.push(`ended: ${String(failure)}`),
  })
  onTestFinished(() => supervisor.stop())
  return Object.assign(Object.create(supervisor) as typeof supervisor, { seen, starts: () => starts })
}

longTest('a worker that an error ends is reported and replaced, and its successor gets messages', async () => {
  const worker = start(READY)
  await worker.started
  expect(worker.isReady).toBe(true)
  worker.post({ type: 'throw' })
  await expect.poll(() => worker.seen.at(-1)).toBe('ready again')
  worker.post({ type: 'echo', text: 'a' })
  await expect.poll(() => worker.seen.at(-1)).toBe('echoed a')
  expect(worker.seen).toEqual([
    'ready',
    'failed: thrown by the worker (true)',
    'ended: thrown by the worker',
    'ready again',
    'echoed a',
  ])
})

test('a message to a worker that is not ready yet is delivered', async () => {
  const worker = start(READY)
  worker.post({ type: 'echo', text: 'early' })
  await expect.poll(() => worker.seen).toEqual(['ready', 'echoed early'])
})

longTest('a refused start resolves `started`, is reported, and is tried again', async () => {
  const worker = start(REFUSED)
  await worker.started
  expect(worker.isReady).toBe(false)
  await expect.poll(() => worker.seen.length).toBeGreaterThan(1)
  expect(new Set(worker.seen)).toEqual(new Set(['failed: no database (false)']))
})

test('a first start that must succeed rejects with its code and is not tried again', async () => {
  const worker = start(REFUSED, { mustStart: true })
  const error = await worker.started.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(MirrorError)
  expect(error).toMatchObject({ code: 'storage', message: 'no database' })
  await worker.stop()
  expect(worker.seen).toEqual([])
})

test('a stopped worker ends without a report of a failure and is not replaced', async () => {
  const worker = start(READY)
  await worker.started
  await worker.stop()
  expect(worker.seen).toEqual(['ready', 'echoed stop', 'ended: null'])
  expect(worker.isReady).toBe(false)
})

test('a worker that is stopped before it is ready ends, and `started` resolves', async () => {
  const worker = start('')
  await Promise.all([worker.stop(), worker.started])
  expect(worker.seen).toEqual(['echoed stop'])
})

test('a worker that becomes ready after it was stopped is not ready, and `started` resolves', async () => {
  const worker = start(READY)
  const stopped = worker.stop()
  await Promise.all([stopped, worker.started])
  expect(worker.isReady).toBe(false)
  expect(worker.seen).toEqual(['echoed stop'])
})

longTest('a worker that is stopped while it waits for its restart is not started again', async () => {
  const worker = start(READY, { restartMs: 200 })
  await worker.started
  worker.post({ type: 'throw' })
  await expect.poll(() => worker.seen.at(-1)).toBe('ended: thrown by the worker')
  worker.post({ type: 'echo', text: 'dropped' })
  await worker.stop()
  const other = start(READY, { restartMs: 200 }) // started later, it is ready after any restart of the first would be
  await other.started
  other.post({ type: 'throw' })
  await expect.poll(() => other.seen.at(-1)).toBe('ready again')
  expect(worker.starts()).toBe(1)
  expect(worker.seen).toEqual(['ready', 'failed: thrown by the worker (true)', 'ended: thrown by the worker'])
})

test('a worker that does not end in time when it is stopped is terminated', async () => {
  const worker = start(READY, { stopTimeoutMs: 1 })
  await worker.started
  worker.post({ type: 'deaf' })
  await worker.stop()
  expect(worker.seen.at(-1)).toBe('ended: null')
  expect(worker.isReady).toBe(false)
})

test('an error of a worker that was stopped is reported, and it is not replaced', async () => {
  const worker = start(READY)
  await worker.started
  worker.post({ type: 'ill' })
  await worker.stop()
  expect(worker.seen.slice(-2)).toEqual(['failed: thrown at the end (true)', 'ended: thrown at the end'])
})

longTest(
  'messages between the end of a worker and the next are dropped, later ones arrive after failed starts',
  async () => {
    const failures = new Int32Array(new SharedArrayBuffer(4))
    const worker = start(
      `if (Atomics.load(workerData, 0) > 0 && Atomics.sub(workerData, 0, 1) > 0) { ${REFUSED} } else ${READY}`,
      { data: failures },
    )
    await worker.started
    Atomics.store(failures, 0, 2)
    worker.post({ type: 'throw' })
    await expect.poll(() => worker.seen.at(-1)).toBe('ready again')
    worker.post({ type: 'echo', text: 'a' })
    await expect.poll(() => worker.seen.at(-1)).toBe('echoed a')
    const failed = 'failed: no database (false)'
    expect(worker.seen.slice(3)).toEqual([failed, failed, 'ready again', 'echoed a'])
  },
)
