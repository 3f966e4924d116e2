import { expect, test } from 'vitest'
import { followPin } from '../../src/server/reading/thread.ts'

test.each([
  ['runs from the start where newer states are kept back', true, ['aa', 'bb', 'cc']],
  ['runs from its first request elsewhere, and moves from then on', false, ['cc']],
])('a thread beside the serving one %s', (_, keepsBack, moves) => {
  const asked: string[] = []
  let isRunning = false
  const thread = {
    isRunning: () => isRunning,
    ask({ pin }: { pin: string }) {
      asked.push(pin)
      return Promise.resolve(null)
    },
  }
  let move: (pin: string) => void = () => undefined
  followPin(thread, { stamp: () => 'aa', keepsBack, onMoved: (call) => void (move = call) })
  move('bb')
  isRunning = true // by a request
  move('cc')
  expect(asked).toEqual(moves)
})
