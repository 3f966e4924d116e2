import { expect, onTestFinished, test } from 'vitest'
import { MirrorError } from '../../src/core/errors.ts'
import { type StopMessage, type Supervisor, supervise } from '../../src/threads/supervisor.ts'

type ToEcho = { readonly type: 'echo'; readonly text: string } | { readonly type: 'throw' }
interface FromEcho {
  readonly type: 'echoed'
  readonly text: string
}

/** A worker that starts with `begin`, echoes texts, throws when asked to, and ends on `stop`. */
function workerOf(begin: string): URL {
  const source = `
    import { parentPort as port, workerData } from 'node:worker_threads'
    ${begin}
    port.on('message', (message) => {
      if (message.type === 'echo') port.postMessage({ type: 'echoed', text: message.text })
      else if (message.type === 'throw') throw new Error('thrown by the worker')
      else port.close()
    })`
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`)
}

const READY = "port.postMessage({ type: 'ready' })"
const REFUSED =
  "port.postMessage({ type: 'refused', code: 'storage', message: 'no database' }); process.exit()"

interface Watched extends Supervisor<ToEcho | StopMessage> {
  readonly seen: string[]
}

function start(begin: string, mustStart = false): Watched {
  const seen: string[] = []
  const supervisor = supervise<ToEcho | StopMessage, FromEcho>({
    file: workerOf(begin),
    data: null,
    restartMs: 1,
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
