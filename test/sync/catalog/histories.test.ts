import { test } from 'vitest'
import { checkHistories } from './histories.ts'

test('after any history of changes and faults the mirror answers as the service does', async () => {
  await checkHistories(1, 6)
})
