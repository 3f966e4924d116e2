import { expect, test } from 'vitest'
import { readVexGeneration } from '../../../src/features/scanners/store/generations.ts'
import { createDice } from '../../support/dice.ts'
import { anyOpenVex, followHistory, openVexBench } from '../../features/scanners/views/vex/history.ts'
import { makeKilled } from '../../features/scanners/views/vex/killing.ts'

test('whatever becomes of its documents, a VEX repository has the bytes of one that is made from the beginning', async () => {
  let copied = 0
  for (let seed = 1; seed <= 15; seed++) {
    copied += await followHistory(openVexBench(), createDice(seed), 30)
  }
  expect(copied).toBeGreaterThan(400)
}, 600_000)

test('killed before anything that it does with a file, the making of a VEX repository leaves a whole one, and goes on', async () => {
  const dice = createDice(3)
  const bench = openVexBench()
  for (let count = 0; count < 6; count++) bench.add(anyOpenVex(dice))
  expect(await makeKilled(bench, Infinity)).toBeGreaterThan(10)
  let kills = 0
  for (let operation = 1; ; operation++) {
    const before = bench.made().bytes
    bench.add(anyOpenVex(dice))
    const after = (await bench.fresh()).bytes
    const ended = await makeKilled(bench, operation)
    const left = bench.made().bytes
    expect(left.equals(before) || left.equals(after)).toBe(true)
    const next = await makeKilled(bench, Infinity) // with no more documents, or what the next killed one goes on from
    expect(next).not.toBeNull()
    expect(bench.made().bytes.equals(after)).toBe(true)
    if (ended !== null) break
    kills++
  }
  expect(kills).toBeGreaterThan(10)
  bench.add(anyOpenVex(dice))
  expect(await bench.make()).toMatchObject({ read: 1 })
  expect(readVexGeneration(bench.dir)?.sources).toBeDefined()
}, 600_000)
