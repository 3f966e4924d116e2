import { expect, test } from 'vitest'
import { asAdmin } from '../sandbox/service/asking.ts'
import { sandboxes } from '../sandbox/fixtures.ts'

const open = sandboxes()

test('two hundred thousand tickets are served a page at a time', async () => {
  const large = await open({ service: { tickets: 200_000 } })
  const { value } = await asAdmin(large, '/v1/patches?ecosystem=npm&order=updated_at:desc&limit=5')
  expect(value['tickets']).toHaveLength(5)
  const { total_count: total } = value['cursor'] as { total_count: number }
  expect(total).toBeGreaterThan(10_000)
})
