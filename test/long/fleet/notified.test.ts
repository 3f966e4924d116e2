import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { generationKey } from '../../../src/features/fleet/generations/format/object-names.ts'
import { type Node, fleetStatus, openFleet, untilFleet } from '../../support/fleet/daemons.ts'

const POLL_SECONDS = 15
const LONGEST_MS = 2000 * POLL_SECONDS

/** What a generation on the store says of its times, Unix milliseconds. */
function timesOf(store: string, generation: number): { publishedAt: number; activateAt: number } {
  const { payload } = JSON.parse(readFileSync(join(store, generationKey(generation)), 'utf8')) as { payload: string }
  const { publishedAt, activateAt } = JSON.parse(payload) as Record<'publishedAt' | 'activateAt', string>
  return { publishedAt: Date.parse(publishedAt), activateAt: Date.parse(activateAt) }
}

/** Waits until a mirror serves a generation; returns when it was seen to, Unix milliseconds. */
async function servedAt(node: Node, generation: number): Promise<number> {
  while ((await fleetStatus(node)).served < generation) await pause(10)
  return Date.now()
}

test('mirrors that are notified of a generation begin to serve it together and soon, and after two polls where one cannot be', async () => {
  const { world, store, env } = await openFleet(30)
  const polls = { LIMIT_FLEET_POLL_SECONDS: String(POLL_SECONDS), LIMIT_FLEET_MAX_LAG_SECONDS: '60' }
  const leader = await world.host({ ...env('a', 'writer'), ...polls })
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const settled = await untilFleet(
    leader,
    ({ seen, served, holdingBackSince }) => served > 0 && served === seen && holdingBackSince === null,
  )
  const other = await world.serve({ ...env('b', 'reader'), ...polls })
  const standby = await world.host({ ...env('c', 'standby'), ...polls })
  const readers = [other, standby]
  for (const node of readers) await untilFleet(node, ({ served }) => served >= settled.served)

  /** Publishes a change, and returns its times and when each mirror was seen to serve it. */
  const change = async (nodes: readonly Node[]) => {
    const { seen } = await fleetStatus(leader)
    world.sandbox.feed.change(3)
    const ended = leader.next('osv')
    leader.agent.requestSync('osv', 'sync')
    await ended
    const committed = Date.now()
    const served = await Promise.all(nodes.map((node) => servedAt(node, seen + 1)))
    const { publishedAt, activateAt } = timesOf(store, seen + 1)
    const seconds = (at: number): string => ((at - committed) / 1000).toFixed(2)
    process.stdout.write(
      `commit to published ${seconds(publishedAt)} s, to its activation ${seconds(activateAt)} s, to served ${served.map(seconds).join(', ')} s\n`,
    )
    return { served, activateAt, delay: activateAt - publishedAt }
  }
  const all = [leader, ...readers]
  const first = await change(all)
  expect(first.delay).toBe(LONGEST_MS) // no mirror has said yet how long it takes
  for (const nodes of [all, all, [leader, other]]) {
    if (!nodes.includes(standby)) await standby.close() // one that was stopped delays nothing
    const soon = await change(nodes)
    expect(soon.delay).toBeLessThan(LONGEST_MS)
    for (const at of soon.served) expect(at).toBeGreaterThanOrEqual(soon.activateAt)
  }
  Object.assign(world.env, env('a', 'writer'))
  expect((await world.patchmirror('fleet', 'status')).out).toMatch(/^c +- .* standby, stopped /m)
  other.child.kill('SIGKILL')
  await other.finished
  const late = await change([leader])
  expect(late.delay).toBe(LONGEST_MS)
  await leader.said(/not all other mirrors can be notified of generations, so these begin after two polls: b at http:/)
  // Once it is known to be behind, nobody waits for it.
  await expect.poll(async () => (await change([leader])).delay).toBeLessThan(LONGEST_MS)
  await leader.said(/not all other mirrors can be notified of generations, but none is delayed: b at http:/)
})

test('a mirror that cannot write what it says of itself reports that, because it is notified of nothing', async () => {
  const { world, store, env } = await openFleet(30)
  writeFileSync(join(store, 'readers'), 'no folder')
  const leader = await world.host(env('a', 'writer'))
  const { failing } = await untilFleet(leader, (fleet) => fleet.leads && fleet.failing !== null)
  expect(failing?.message).toContain('readers/')
  rmSync(join(store, 'readers'))
  await untilFleet(leader, (fleet) => fleet.failing === null)
})
