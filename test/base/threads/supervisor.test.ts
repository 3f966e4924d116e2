import { expect, onTestFinished, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { type StopMessage, type Supervisor, supervise } from '../../../src/base/threads/supervisor.ts'
import { longTest } from '../../support/tables.ts'

type ToEcho =
  { readonly type: 'echo'; readonly text: string } | { readonly type: 'throw' | 'sleepy' | 'careless' | 'ill' }
interface FromEcho {
  readonly type: 'echoed'
  readonly text: string
}

/**
 * A worker that starts with `begin`, echoes texts, throws when asked to, and ends on `stop`. `sleepy` makes it ask for rest with
 * the number of its messages, `careless` with another number, and `ill` makes it throw on `stop`.
 */
function workerOf(begin: string): URL {
  const source = `
    import { parentPort as port, workerData } from 'node:worker_threads'
    ${begin}
    let [seen, isIll, isSleepy] = [0, false, false]
    port.on('message', (message) => {
      seen += 1
      if (message.type === 'sleepy') {
        isSleepy = true
        return port.postMessage({ type: 'rest', seen })
      }
      if (message.type === 'careless') return port.postMessage({ type: 'rest', seen: seen - 1 })
      if (message.type === 'ill') return void (isIll = true)
      if (isIll && message.type === 'stop') throw new Error('thrown at the end')
      if (isSleepy && message.type === 'stop') port.postMessage({ type: 'echoed', text: 'asleep' })
      if (message.type === 'echo') port.postMessage({ type: 'echoed', text: message.text })
      else if (message.type === 'throw') throw new Error('thrown by the worker')
      else port.close()
    })`
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`)
}

const READY = "port.postMessage({ type: 'ready' })"
const REFUSED = "port.postMessage({ type: 'refused', code: 'storage', message: 'no database' }); process.exit()"

interface Watched extends Supervisor<ToEcho | StopMessage> {
  readonly seen: string[]
}

function start(begin: string, mustStart = false, data: unknown = null, restartMs = 1): Watched {
  const seen: string[] = []
  const supervisor = supervise<ToEcho | StopMessage, FromEcho>({
    file: workerOf(begin),
    data: () => data,
    restartMs,
    mustStart,
    onMessage: ({ text }) => seen.push(`echoed ${text}`),
    onReady: (isRestart) => seen.push(isRestart ? 'ready again' : 'ready'),
    onFailed: (message, wasReady) => seen.push(`failed: ${message} (${String(wasReady)})`),
    onEnded: (failure) => seen.push(`ended: ${String(failure)}`),
  })
  onTestFinished(() => supervisor.stop())
  return Object.assign(Object.create(supervisor) as typeof supervisor, { seen })
}

test('a worker that an error ends is reported and replaced, and its successor gets messages', async () => {
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

test('a refused start resolves `started`, is reported, and is tried again', async () => {
  const worker = start(REFUSED)
  await worker.started
  expect(worker.isReady).toBe(false)
  await expect.poll(() => worker.seen.length).toBeGreaterThan(1)
  expect(new Set(worker.seen)).toEqual(new Set(['failed: no database (false)']))
})

test('a first start that must succeed rejects with its code and is not tried again', async () => {
  const worker = start(REFUSED, true)
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
  expect(worker.seen).toEqual(['ready', 'ended: null'])
  expect(worker.isReady).toBe(false)
})

test('a worker that is stopped before it is ready ends, and `started` resolves', async () => {
  const worker = start('')
  await Promise.all([worker.stop(), worker.started])
  expect(worker.seen).toEqual([])
})

/** A worker that asked for rest; resolves when it ends. */
async function resting(): Promise<Watched> {
  const worker = start(READY)
  await worker.started
  worker.post({ type: 'sleepy' })
  await expect.poll(() => worker.seen).toEqual(['ready', 'echoed asleep'])
  return worker
}

/** Long enough for a worker to end. */
const endOfWorker = () => new Promise((resolve) => setTimeout(resolve, 50))

test.each(['ends', 'has ended'])(
  'a worker that has nothing to do rests without a report, and runs again with a message while it %s',
  async (when) => {
    const worker = await resting()
    if (when === 'has ended') await endOfWorker()
    expect(worker.isReady).toBe(false)
    worker.post({ type: 'echo', text: 'a' })
    worker.post({ type: 'echo', text: 'b' })
    await expect.poll(() => worker.seen).toEqual(['ready', 'echoed asleep', 'ready again', 'echoed a', 'echoed b'])
    expect(worker.isReady).toBe(true)
    worker.post({ type: 'sleepy' })
    await expect.poll(() => worker.seen.at(-1)).toBe('echoed asleep')
  },
)

longTest('no message is lost to a worker that is about to rest', async () => {
  const worker = start(READY)
  await worker.started
  const count = (pattern: RegExp) => worker.seen.filter((line) => pattern.test(line)).length
  const expected = []
  for (let i = 0; i < 200; i++) {
    const asleep = count(/asleep/)
    worker.post({ type: i % 3 === 1 ? 'careless' : 'sleepy' })
    if (i % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
    if (i % 12 === 0) await expect.poll(() => count(/asleep/), { interval: 1 }).toBe(asleep + 1)
    if (i % 24 === 0) await endOfWorker()
    worker.post({ type: 'echo', text: String(i) })
    expected.push(`echoed ${i}`)
    if (i % 12 === 11) await expect.poll(() => count(/echoed \d/)).toBe(i + 1)
  }
  await expect.poll(() => count(/echoed \d/)).toBe(200)
  expect(worker.seen.filter((line) => /echoed \d/.test(line))).toEqual(expected)
  expect(count(/ready again/)).toBeGreaterThanOrEqual(17)
  expect(count(/failed|ended/)).toBe(0)
})

test('a worker that has not seen all messages goes on', async () => {
  const worker = start(READY)
  await worker.started
  worker.post({ type: 'careless' })
  await endOfWorker()
  worker.post({ type: 'echo', text: 'a' })
  await expect.poll(() => worker.seen).toEqual(['ready', 'echoed a'])
})

test('an error at the end that a rest asked for is reported, and the worker is replaced', async () => {
  const worker = start(READY)
  await worker.started
  worker.post({ type: 'ill' })
  worker.post({ type: 'sleepy' })
  await expect
    .poll(() => worker.seen)
    .toEqual(['ready', 'failed: thrown at the end (true)', 'ended: thrown at the end', 'ready again'])
})

test('a worker that rests is stopped at once, and a message after that starts none', async () => {
  const worker = await resting()
  await worker.stop()
  worker.post({ type: 'echo', text: 'late' })
  await endOfWorker()
  expect(worker.seen).toEqual(['ready', 'echoed asleep'])
  expect(worker.isReady).toBe(false)
})

test('a worker that is stopped while it ends to rest is not started again', async () => {
  const worker = await resting()
  worker.wake()
  await worker.stop()
  const lines = worker.seen.length
  worker.post({ type: 'echo', text: 'late' })
  await endOfWorker()
  expect(worker.seen).toHaveLength(lines)
  expect(worker.isReady).toBe(false)
})

test('a worker that rests is woken without a message', async () => {
  const worker = await resting()
  worker.wake()
  worker.wake()
  await expect.poll(() => worker.seen.at(-1)).toBe('ready again')
  worker.wake()
  worker.post({ type: 'echo', text: 'a' })
  await expect.poll(() => worker.seen).toEqual(['ready', 'echoed asleep', 'ready again', 'echoed a'])
})

test('messages wait for the next ready worker when starts after a rest fail', async () => {
  const shared = new Int32Array(new SharedArrayBuffer(4))
  const worker = start(
    `if (Atomics.load(workerData, 0) > 0 && Atomics.sub(workerData, 0, 1) > 0) { ${REFUSED} } else ${READY}`,
    false,
    shared,
  )
  await worker.started
  worker.post({ type: 'sleepy' })
  await expect.poll(() => worker.seen).toEqual(['ready', 'echoed asleep'])
  await endOfWorker()
  Atomics.store(shared, 0, 2)
  worker.post({ type: 'echo', text: 'a' })
  worker.post({ type: 'echo', text: 'b' })
  const failed = 'failed: no database (false)'
  await expect.poll(() => worker.seen.slice(2)).toEqual([failed, failed, 'ready again', 'echoed a', 'echoed b'])
})

test('a worker rests also after a failure, whatever was posted before its restart', async () => {
  const worker = start(READY, false, null, 50)
  await worker.started
  worker.post({ type: 'throw' })
  await expect.poll(() => worker.seen.at(-1)).toBe('ended: thrown by the worker')
  for (let i = 0; i < 3; i++) worker.post({ type: 'echo', text: 'dropped' })
  await expect.poll(() => worker.seen.at(-1)).toBe('ready again')
  worker.post({ type: 'sleepy' })
  await expect.poll(() => worker.seen.at(-1)).toBe('echoed asleep')
})
