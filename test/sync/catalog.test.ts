import { describe, expect, test } from 'vitest'
import { catalogBench } from '../catalog/benches.ts'

describe('the catalog', () => {
  test('is mirrored as far as the account subscribes to it', async () => {
    const made = await catalogBench({
      images: 4,
      tags: 20,
      packages: 12,
      tickets: 50,
      subscriptions: 3,
    })
    const report = await made.run('catalog')
    console.log(report)
    expect(report).toMatchObject({ state: 'complete', code: null })
    made.sandbox.requests.clear()
    const again = await made.run('catalog')
    console.log(
      again,
      made.sandbox.requests.entries.map((e) => `${e.status} ${e.path}`),
    )
    console.log(
      made.store.listCatalogLists().map((l) => `${l.path} ${l.entries} ${l.frame}`),
      made.store.countCatalog(),
    )
  })
})
