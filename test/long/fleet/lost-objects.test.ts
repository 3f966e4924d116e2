import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generationKey } from '../../../src/features/fleet/generations/format/object-names.ts'
import { openFleet, untilFleet } from '../../support/fleet/daemons.ts'

test('mirrors say what their store lost until it is back, and then go on by themselves', async () => {
  const { world, env, store } = await openFleet(30)
  const leader = await world.host(env('a', 'writer'))
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const { served: first } = await untilFleet(
    leader,
    ({ served, holdingBackSince }) => served > 0 && holdingBackSince === null,
  )
  const change = async (generation: number): Promise<void> => {
    world.sandbox.feed.change(1)
    leader.agent.requestSync('osv', 'sync')
    await untilFleet(leader, ({ served }) => served >= generation)
  }
  const settings = env('b', 'reader')
  const reader = await world.serve(settings)
  await untilFleet(reader, ({ served }) => served >= first)
  reader.child.kill('SIGTERM')
  await reader.finished
  await change(first + 1)
  await change(first + 2)

  const missing = join(store, generationKey(first + 1))
  renameSync(missing, `${store}-missing`)
  const again = await world.serve(settings)
  const ready = async (): Promise<number> => (await fetch(`${again.url}/-/ready`)).status
  await untilFleet(again, ({ failing }) => failing?.refused === 'hole')
  await expect.poll(ready).toBe(503) // after maxLagSeconds
  const stuck = await untilFleet(again, () => true)
  expect(stuck).toMatchObject({ served: first, failing: { refused: 'hole' }, leader: { name: 'a' } })
  renameSync(`${store}-missing`, missing)
  await untilFleet(again, ({ served, failing }) => served === first + 2 && failing === null)
  await expect.poll(ready).toBe(200)

  for (const name of readdirSync(join(store, 'bundles'))) rmSync(join(store, 'bundles', name))
  const fresh = await world.serve(env('c', 'reader'))
  await untilFleet(fresh, ({ failing, leader: leads }) => failing?.refused === 'missing' && leads?.name === 'a')
  await change(first + 3)
  await untilFleet(fresh, ({ served, failing }) => served >= first + 3 && failing === null)
})
