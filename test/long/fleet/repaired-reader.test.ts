import { expect, test } from 'vitest'
import { openWriter } from '../../../src/store/database/open.ts'
import type { FleetStatus } from '../../../src/base/reports/fleet.ts'
import { openFleet, untilFleet } from '../../support/fleet/daemons.ts'

test('a reader whose data are damaged is filled again by its fleet after the repair that the advice names', async () => {
  const { world, env } = await openFleet(5)
  const leader = await world.host(env('a', 'auto'))
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const isDone = ({ served, seen, holdingBackSince }: FleetStatus): boolean =>
    served > 0 && served === seen && holdingBackSince === null
  const { served: last } = await untilFleet(leader, isDone)
  const reader = await world.host(env('b', 'reader'))
  await untilFleet(reader, ({ served }) => served === last)
  await leader.close()
  await reader.close()
  Object.assign(world.env, env('b', 'reader'))
  const digest = (await world.patchmirror('status', '--digest')).out
  const data = world.env['PATCHMIRROR_DATA_DIR'] ?? ''
  const db = openWriter(data)
  expect(db.prepare("UPDATE document SET body = x'00' WHERE path = '/external/patch_feed'").run().changes).toBe(1)
  db.close()
  const found = await world.patchmirror('doctor', '--data')
  expect([found.code, found.out]).toEqual([1, expect.stringContaining('stop the daemon and run "patchmirror doctor')])
  const { PATCHMIRROR_FLEET_URL: url = '' } = world.env
  world.env['PATCHMIRROR_FLEET_URL'] = `${url}-away`
  const refused = await world.patchmirror('doctor', '--data', '--repair')
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('Nothing was repaired or moved')])
  world.env['PATCHMIRROR_FLEET_URL'] = url
  const repaired = await world.patchmirror('doctor', '--data', '--repair')
  expect([repaired.code, repaired.out]).toEqual([3, expect.stringMatching(/start the daemon: .* its fleet/)])
  const again = await world.host({})
  await untilFleet(again, ({ served }) => served > 0)
  expect((await world.patchmirror('status', '--digest')).out).toBe(digest)
  expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
})
