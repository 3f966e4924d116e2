import { expect, test } from 'vitest'
import { expectWhole, killAndResume, world } from '../sync/catalog/killing.ts'
import { killAt } from '../sync/killing.ts'

test.each([1, 2, 5, 17, 40, 61])('a crawl that is killed at item %i is gone on with', async (nth) => {
  await killAndResume(await world(), nth)
})

test('a crawl that is killed again and again gets there in the end', async () => {
  const { sandbox, dir, options } = await world()
  let kills = 0
  while (kills < 40 && (await killAt(sandbox, dir, 'items', 7, { ...options, running: true }))) kills++
  expect(kills).toBeGreaterThan(5)
  expect(kills).toBeLessThan(40)
  await expectWhole(dir)
})
