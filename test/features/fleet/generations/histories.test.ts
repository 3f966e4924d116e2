import fc from 'fast-check'
import { expect } from 'vitest'
import { LONG, longTest, test } from '../../../support/tables.ts'
import { type Step, histories, runHistory } from './histories.ts'

const RUNS = LONG ? 1_000 : 25

longTest(
  'no history of crashes, zombies, lost answers and takeovers forks the chain, or makes a reader go back',
  async () => {
    await fc.assert(fc.asyncProperty(histories, runHistory), { numRuns: RUNS })
    expect.hasAssertions()
  },
)

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
  'a publication that is suspended at its call %i for days names nothing that was deleted meanwhile',
  async (at) => {
    const days: Step[] = [
      { do: 'wait', hours: 100 },
      { do: 'gc', node: 1, at: 1, fault: null },
    ]
    const suspended: Step[] = [
      { do: 'sync', node: 0 },
      { do: 'sleep', node: 0, at },
    ]
    await runHistory([{ do: 'upstream' }, ...suspended, ...days, ...days, { do: 'wake', node: 0 }])
    expect.hasAssertions()
  },
)
