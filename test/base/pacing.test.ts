import { setImmediate as nextRound } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createFairQueue } from '../../src/base/pacing.ts'

test('the queue serves one caller in each round of the event loop, in the order of their requests', async () => {
  const turns = createFairQueue()
  const told: string[] = []
  const work = async (name: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      await turns.next()
      told.push(name)
    }
  }
  const all = Promise.all([work('a', 3), work('b', 3), work('c', 1)])
  const counts: number[] = []
  for (let round = 0; round < 9; round++) {
    await nextRound()
    counts.push(told.length)
  }
  await all
  expect(told).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'b'])
  const steps = counts.map((count, i) => count - (counts[i - 1] ?? 0))
  expect(Math.max(...steps)).toBe(1)
})

test('addresses take turns, whatever number of tasks each has', async () => {
  const turns = createFairQueue()
  const told: string[] = []
  const work = async (name: string, address: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      await turns.next(address)
      told.push(name)
    }
  }
  const many = ['m1', 'm2', 'm3'].map((name) => work(name, 'many', 2))
  await Promise.all([...many, work('one', 'one', 3)])
  expect(told).toEqual(['m1', 'one', 'm2', 'one', 'm3', 'one', 'm1', 'm2', 'm3'])
})

test('a caller that finds the queue empty is served', async () => {
  const turns = createFairQueue()
  await turns.next()
  await nextRound()
  await turns.next()
})
