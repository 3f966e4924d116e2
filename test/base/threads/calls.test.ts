import { MessageChannel } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { type CallReply, type NumberedCall, answerCalls, createCalls } from '../../../src/base/threads/calls.ts'

type Work = (asked: string) => unknown

/** Calls over a real channel, as between two threads. */
function connected(work: Work) {
  const { port1: own, port2: other } = new MessageChannel()
  onTestFinished(() => own.close())
  answerCalls(other, work)
  const calls = createCalls<string, unknown>(() => new MirrorError('storage', 'not connected'))
  own.on('message', (reply: CallReply<unknown>) => calls.settle(reply))
  calls.connect((call: NumberedCall<string>) => own.postMessage(call))
  return calls
}

test('each call gets its own result, in whatever order they come', async () => {
  const first = Promise.withResolvers<string>()
  const calls = connected((asked) => (asked === 'first' ? first.promise : `${asked} is done`))
  const waiting = calls.call('first')
  expect(await calls.call('second')).toBe('second is done')
  first.resolve('late')
  expect(await waiting).toBe('late')
})

test('an error of the other side keeps its class, its code and its cause', async () => {
  const cause = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  const calls = connected((asked) => {
    throw asked === 'named' ? new MirrorError('storage', 'no room', { cause }) : cause
  })
  const named = calls.call('named')
  await expect(named).rejects.toBeInstanceOf(MirrorError)
  await expect(named).rejects.toMatchObject({ code: 'storage', message: 'no room', cause: { code: 'SQLITE_FULL' } })
  const plain = calls.call('plain')
  await expect(plain).rejects.not.toBeInstanceOf(MirrorError)
  await expect(plain).rejects.toMatchObject({ code: 'SQLITE_FULL', message: 'database or disk is full' })
})

test('a result that cannot cross threads is an error of its call, and the next call is answered', async () => {
  const calls = connected((asked) => (asked === 'function' ? () => asked : asked))
  await expect(calls.call('function')).rejects.toThrow('could not be cloned')
  expect(await calls.call('text')).toBe('text')
})

test('calls without a reply are rejected when the other side is lost, and so are further ones until it is back', async () => {
  const calls = connected((asked) => (asked === 'never' ? new Promise(() => undefined) : asked))
  const lost = calls.call('never')
  calls.disconnect()
  await expect(lost).rejects.toMatchObject({ code: 'storage', message: 'not connected' })
  await expect(calls.call('meanwhile')).rejects.toThrow('not connected')
  const sent: NumberedCall<string>[] = []
  calls.connect((call) => sent.push(call))
  const again = calls.call('again')
  calls.disconnect(new Error('the thread died'))
  await expect(again).rejects.toThrow('the thread died')
  const after = calls.call('after')
  await expect(after).rejects.toThrow('not connected')
  calls.settle({ id: sent[0]?.id ?? -1, result: 'too late' }) // belongs to nothing any more
})
