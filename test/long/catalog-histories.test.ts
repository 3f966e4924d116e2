import { test } from 'vitest'
import { checkHistories } from '../sync/catalog/histories.ts'

test('after any of many histories of changes and faults the mirror answers as the service does', async () => {
  await checkHistories(50, 30)
})

test('a list that could not be asked how it names its next page is asked again by the next run', async () => {
  await checkHistories(3, 30, 1953904300) // the third history is the one that found it
})
