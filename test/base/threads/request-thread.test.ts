import { expect, onTestFinished, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { type RequestThread, createRequestThread } from '../../../src/base/threads/request-thread.ts'

/** Starts a thread that answers by `answer`, an expression of `port`, `id` and `asked`, with places for so many requests. */
function startThread(answer: string, maxWaiting = 9): RequestThread<number, number> {
  const source = `import { parentPort as port } from 'node:worker_threads'
    port.on('message', ({ id, asked }) => ${answer})`
  const file = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
  const thread = createRequestThread<number, number>({ file, data: {}, maxWaiting, what: 'SBOMs' })
  onTestFinished(() => thread.close())
  return thread
}

/** Starts a thread that never answers. */
const startSilent = (maxWaiting: number) => startThread('undefined', maxWaiting)

const HERE = { isGone: () => false, address: 'a' }

test('a thread has one request at a time, and what may come later only when no other waits', async () => {
  // It answers with what came together: two requests at once would be one answer more than there are messages.
  const thread = startThread(`{
    globalThis.seen = (globalThis.seen ?? 0) + 1
    const before = seen
    setImmediate(() => port.postMessage({ id, result: seen === before ? asked : -1 }))
  }`)
  const order: number[] = []
  const ask = (asked: number, when?: 'now' | 'later') =>
    thread.ask(asked, HERE, when).then((reply) => order.push(Number(reply)))
  await Promise.all([ask(1), ask(2, 'later'), ask(3), ask(4)])
  expect(order).toEqual([1, 3, 4, 2])
})

test('a request whose client is gone when its turn comes is never started', async () => {
  const thread = startThread('port.postMessage({ id, result: asked })')
  const first = thread.ask(1, HERE)
  const gone = thread.ask(2, { ...HERE, isGone: () => true })
  expect(await Promise.all([first, gone, thread.ask(3, HERE)])).toEqual([1, null, 3])
})

test('a thread that dies loses only the request it had, and another one answers the next', async () => {
  const thread = startThread(`{
    if (asked === 0) throw new Error('out of memory')
    port.postMessage({ id, result: asked })
  }`)
  const lost = thread.ask(0, HERE)
  const next = thread.ask(1, HERE)
  await expect(lost).rejects.toThrow('out of memory')
  expect(await next).toBe(1)
})

test('one address does not take all places: it gives the last ones up to others', async () => {
  const thread = startSilent(4)
  const refused: string[] = []
  const ask = (name: string, address: string | null): void => {
    const here = { isGone: () => false, address }
    thread.ask(0, here).catch((error: unknown) => {
      if (error instanceof MirrorError && error.code === 'not_ready') refused.push(name)
    })
  }
  for (const name of ['a0', 'a1', 'a2', 'a3', 'a4', 'a5']) ask(name, 'a') // the first is worked on
  for (const name of ['b1', 'b2', 'b3']) ask(name, 'b')
  ask('own', null)
  ask('c1', 'c')
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused).toEqual(['a5', 'a4', 'a3', 'b3', 'b2'])
})

test('requests whose clients are gone leave their places in the queue to others', async () => {
  const thread = startSilent(2)
  const here = { isGone: () => false, address: 'a' }
  const state = { isGone: false }
  const closed = [thread.ask(0, here), thread.ask(1, here)] // the first is worked on, for ever
  const gone = thread.ask(2, { ...here, isGone: () => state.isGone })
  await expect(thread.ask(3, here)).rejects.toMatchObject({ code: 'not_ready' })
  state.isGone = true
  closed.push(thread.ask(4, here))
  expect(await gone).toBeNull()
  const ends = Promise.allSettled(closed)
  await thread.close()
  const aborted = { status: 'rejected', reason: { code: 'aborted' } }
  expect(await ends).toMatchObject([aborted, aborted, aborted])
})
