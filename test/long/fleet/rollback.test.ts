import { expect, test } from 'vitest'
import { fleetStatus, openFleet, untilFleet } from '../../support/fleet/daemons.ts'

test('goes back to an older generation beside the daemons, and syncs only after the release', async () => {
  const { world, env } = await openFleet(30)
  const leader = await world.host(env('a', 'auto'))
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const reader = await world.host(env('b', 'reader'))
  const good = await untilFleet(
    leader,
    ({ served, seen, holdingBackSince }) => served > 0 && served === seen && holdingBackSince === null,
  )
  const ids = async ({ url }: { url: string }): Promise<string> => (await fetch(`${url}/external/osv/all.json`)).text()
  const before = await ids(leader)
  world.sandbox.feed.add(5)
  leader.agent.requestSync('osv', 'sync')
  const wrong = await untilFleet(reader, ({ served }) => served > good.served)
  expect(await ids(reader)).not.toBe(before)

  Object.assign(world.env, env('a', 'auto'))
  const back = await world.patchmirror('fleet', 'rollback', String(good.served))
  expect([back.code, back.err]).toEqual([0, ''])
  await untilFleet(reader, ({ served }) => served > wrong.served)
  expect(await ids(reader)).toBe(before)
  leader.agent.requestSync('osv', 'sync')
  await untilFleet(leader, ({ served, seen }) => served === seen && seen > wrong.served)
  await leader.said(/nothing is synced until/)
  expect(await fleetStatus(leader)).toMatchObject({ paused: true })
  const refused = await world.patchmirror('sync', 'osv')
  expect([refused.code === 0, refused.err]).toEqual([
    false,
    expect.stringContaining('run "patchmirror fleet rollback --end" first'),
  ])
  expect((await world.patchmirror('fleet', 'status')).out).toContain('nothing is synced until')
  expect((await world.patchmirror('status')).out).toMatch(/^fleet: .*nothing is synced until/m)
  expect(await ids(leader)).toBe(before)

  const { served } = await fleetStatus(leader)
  expect((await world.patchmirror('fleet', 'rollback', '--end')).code).toBe(0)
  await leader.said(/this mirror syncs again/)
  await untilFleet(leader, ({ paused }) => !paused)
  leader.agent.requestSync('osv', 'sync')
  await untilFleet(reader, (fleet) => fleet.served > served)
  expect(await ids(reader)).not.toBe(before)
})
