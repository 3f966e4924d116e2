import { expect, test } from 'vitest'
import { shaped } from '../../src/sandbox/service/shapes/shape.ts'
import { catalogBench } from '../catalog/benches.ts'
import { differences } from './catalog-benches.ts'

const SMALL = { images: 3, tags: 4, packages: 5, tickets: 4, avrs: 3, subscriptions: 2 }

test.each(['camel', 'prefixed'] as const)(
  'items are known by their identifiers, and what they refer to is found, with %s field names',
  async (fields) => {
    const shape = shaped('wire', { records: { fields } })
    const made = await catalogBench(
      { ...SMALL, shape },
      { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } },
    )
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
    const owners = new Set([...made.store.eachHeldAnswer()].map(({ owner }) => owner))
    for (const kind of ['images', 'tags', 'packages', 'avrs', 'subscriptions'] as const)
      for (const id of made.sandbox.service.ids(kind))
        expect([...owners]).toContain(`${kind}/${id}`)
    expect(await differences(made)).toEqual([])
  },
)
