import { MessageChannel } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { restWhenIdle } from '../../../src/base/threads/rest.ts'

test('a worker asks for rest after three idle checks in a row, with the number of messages that it received', async () => {
  const { port1: own, port2: other } = new MessageChannel()
  onTestFinished(() => own.close())
  const asked: unknown[] = []
  other.on('message', (message) => asked.push(message))
  const answers = [true, true, false, true, true, true]
  let checks = 0
  restWhenIdle(own, () => answers[checks++] ?? false, 1)
  other.postMessage('a')
  other.postMessage('b')
  await expect.poll(() => checks).toBeGreaterThan(answers.length + 3)
  expect(asked).toEqual([{ type: 'rest', seen: 2 }])
})
