import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LONG } from '../../support/tables.ts'
import { histories, runHistory } from './histories.ts'

const RUNS = LONG ? 10_000 : 25

test('no history of crashes, zombies, lost answers and takeovers forks the chain, or makes a reader go back', async () => {
  await fc.assert(fc.asyncProperty(histories, runHistory), { numRuns: RUNS })
  expect.hasAssertions()
}, 1_800_000)
