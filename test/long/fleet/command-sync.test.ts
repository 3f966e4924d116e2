import { expect, test } from 'vitest'
import { openFleet, untilFleet } from '../../support/fleet/daemons.ts'

test('syncs by hand that follow each other beside a leader never keep it from serving what is new', async () => {
  const { world, env } = await openFleet(30)
  const leader = await world.host(env('a', 'auto'))
  await leader.said(/osv sync: complete/)
  const first = await untilFleet(leader, ({ served, holdingBackSince }) => served > 0 && holdingBackSince === null)
  world.env = { ...world.env, ...env('a', 'auto') }
  for (let round = 0; round < 3; round++) {
    world.sandbox.feed.add(1)
    const { code, err } = await world.patchmirror('sync', 'osv')
    expect(code, err).toBe(0)
    if (round > 0) expect(err).toContain('waits for the activation')
  }
  const { served } = await untilFleet(leader, ({ served }) => served >= first.served + 2)
  expect(served).toBeGreaterThanOrEqual(first.served + 2)
})
