import { describe, expect } from 'vitest'
import type { Bench } from '../../support/mirror.ts'
import { test } from '../../support/tables.ts'
import { synced } from '../fixtures.ts'
import { approve } from './attacks.ts'

const LIMIT = { PATCHMIRROR_GUARD_LIMIT: 'removed=60% and 500' }

/** Returns the records of a feed with an ecosystem, in lower case; those of its releases too. */
function idsOf({ sandbox: { feed } }: Bench, ecosystem: string): string[] {
  return feed.ids().filter((id) => feed.record(id).toString().toLowerCase().includes(`"ecosystem":"${ecosystem}`))
}

async function without(ecosystem: string, keep = 0) {
  const made = await synced()
  const ids = idsOf(made, ecosystem)
  expect(ids.length).toBeGreaterThan(2)
  for (const id of ids.slice(keep)) made.sandbox.feed.delete(id)
  return { made, ids }
}

describe('an index that lists no record of an ecosystem any more', () => {
  test('is refused below the limits, and published when it is approved', async () => {
    const { made, ids } = await without('root:pypi')
    const refused = await made.runWith(LIMIT, 'osv')
    expect(refused).toMatchObject({ state: 'quarantined', facts: { plannedRemoved: ids.length } })
    expect(refused.message).toContain(`it would remove all ${ids.length} records of root:pypi`)
    expect(ids.filter((id) => made.store.osv.readEntry(id) === null)).toEqual([])
    expect(await approve(made, refused.id)).toMatchObject({ state: 'complete' })
    expect(ids.filter((id) => made.store.osv.readEntry(id) !== null)).toEqual([])
  })

  test('is published where one is left', async () => {
    const { made } = await without('root:pypi', 1)
    expect(await made.runWith(LIMIT, 'osv')).toMatchObject({ state: 'complete' })
  })

  test('is published where only a release ended', async () => {
    const { made } = await without('root:alpine:3.18')
    expect(await made.runWith(LIMIT, 'osv')).toMatchObject({ state: 'complete' })
  })

  test('is published where as many come under other ids', async () => {
    const { made, ids } = await without('root:pypi')
    const { feed } = made.sandbox
    const [one = ''] = idsOf(made, 'root:npm')
    for (const id of ids)
      feed.put(`NEW-${id}`, feed.record(one).toString().replace(one, `NEW-${id}`).replace('Root:npm', 'Root:PyPI'))
    expect(await made.runWith(LIMIT, 'osv')).toMatchObject({ state: 'complete' })
  })
})
