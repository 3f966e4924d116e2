import { test } from 'vitest'
import { checkHistories } from '../sync/catalog-histories.ts'

test('after any of many histories of changes and faults the mirror answers as the service does', async () => {
  await checkHistories(150, 30)
})
