import fc from 'fast-check'
import { expect, test } from 'vitest'
import { playOne, steps } from '../features/bundles/histories.ts'

test('a hundred histories of changes, media, losses, repeats and reorderings', async () => {
  const seen = { applied: 0, refused: 0, same: 0 }
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const one = await playOne(history)
      for (const name of ['applied', 'refused', 'same'] as const) seen[name] += one[name]
    }),
    { numRuns: 100, endOnFailure: true },
  )
  expect(seen.applied).toBeGreaterThan(50)
  expect(seen.refused).toBeGreaterThan(20)
  expect(seen.same).toBeGreaterThan(20)
})
