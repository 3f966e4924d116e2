import { expect, test } from 'vitest'
import { asAdmin, ask, expectDistinctIds } from '../sandbox/service/asking.ts'
import { sandboxes } from '../sandbox/fixtures.ts'

const open = sandboxes()

test('two hundred thousand tickets are served a page at a time', async () => {
  const large = await open({ service: { tickets: 200_000 } })
  const { value } = await asAdmin(large, '/v1/patches?ecosystem=npm&order=updated_at:desc&limit=5')
  expect(value['tickets']).toHaveLength(5)
  const { total_count: total } = value['cursor'] as { total_count: number }
  expect(total).toBeGreaterThan(10_000)
})

test('thousands of generated things of each kind have ids of their own', async () => {
  const large = await open({
    service: { images: 50, tags: 5000, packages: 2000, tickets: 20_000 },
  })
  expectDistinctIds(large)
  expect(large.service.ids('tags')).toHaveLength(5000)
})

test('a generated SBOM may be of twenty megabytes', async () => {
  const large = await open({ service: { largeSboms: 1, tags: 2 } })
  const id = large.service.ids('tags')[0] ?? ''
  const { value } = await asAdmin(large, `/v1/tags/${id}/sbom`)
  const { bytes } = await ask(String(value['sbom_file_url']))
  expect(bytes.length).toBeGreaterThan(19_000_000)
  expect(bytes.length).toBeLessThan(22_000_000)
})
