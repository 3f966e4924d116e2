import { expect, test } from 'vitest'
import { findItems, referenceOfPurl } from '../../../src/server/lookup/named.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'

const DIGEST = `sha256:${'7'.repeat(64)}`

test('an image is found by its digest, under any name and as a package URL', async () => {
  const bench = await catalogBench({ images: 1, tags: 2, packages: 1, tickets: 1 })
  const [tag = ''] = bench.sandbox.service.ids('tags')
  bench.sandbox.service.change('tags', tag, { digest: DIGEST })
  await bench.run('catalog')
  const found = (text: string) => findItems(bench.store.catalog, text, 10).map(({ id }) => id)
  const forms = [
    DIGEST,
    `registry.corp.example:5000/team/renamed@${DIGEST}`,
    `registry.corp.example/team/renamed:9.9@${DIGEST}`,
    `pkg:oci/renamed@${encodeURIComponent(DIGEST)}?repository_url=registry.corp.example/team/renamed`,
    `pkg:docker/team/renamed@9.9?digest=${DIGEST}`,
  ]
  for (const form of forms) expect([form, new Set(found(form))]).toEqual([form, new Set([tag])])
  expect(found(`team/renamed:9.9@${DIGEST.replaceAll('7', '8')}`)).toEqual([])
  expect(referenceOfPurl('pkg:oci/app?repository_url=cr.example.com/app&tag=1')).toBe('cr.example.com/app:1')
  expect(referenceOfPurl('pkg:npm/app')).toBe(null)
})
