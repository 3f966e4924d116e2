import fc from 'fast-check'
import { expect, test } from 'vitest'
import { playOne, steps } from '../../features/bundles/histories.ts'

test('bundles that arrive in any order lead to an exported state, never to an older one, or are refused', async () => {
  const seen = { applied: 0, refused: 0, same: 0 }
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const one = await playOne(history)
      for (const name of ['applied', 'refused', 'same'] as const) seen[name] += one[name]
    }),
    { numRuns: 1, seed: 14, endOnFailure: true },
  )
  expect(seen.applied).toBeGreaterThan(3)
  expect(seen.refused).toBeGreaterThan(0)
})
