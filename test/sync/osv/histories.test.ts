import fc from 'fast-check'
import { histories, liveThrough } from './histories.ts'
import { bothTest, LONG } from '../../support/tables.ts'

bothTest('after any history, faults included, the mirror equals upstream', async () => {
  const property = fc.asyncProperty(histories(14), async (history) => {
    const wrong = await liveThrough(history)
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  })
  await fc.assert(property, { numRuns: LONG ? 6 : 2, endOnFailure: true })
})
