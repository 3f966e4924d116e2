import fc from 'fast-check'
import { test } from 'vitest'
import { histories, liveThrough } from '../sync/osv/histories.ts'

test('after any long history, faults included, the mirror is upstream’s equal', async () => {
  const property = fc.asyncProperty(histories(40), async (history) => {
    const wrong = await liveThrough(history)
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  })
  await fc.assert(property, { numRuns: 300 })
})
