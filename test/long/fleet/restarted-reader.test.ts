import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { FleetStatus } from '../../../src/base/reports/fleet.ts'
import type { ViewsStatus } from '../../../src/base/reports/scanners.ts'
import { type Node, openFleet } from '../../support/fleet/daemons.ts'

interface Seen {
  readonly fleet: FleetStatus
  readonly views: readonly ViewsStatus[]
}

/** What a reader says about its views: their state, and whether they are of the snapshot that is served. */
async function lookAt({ url }: Node): Promise<{ generation: number; views: string }> {
  const { fleet, views } = (await (await fetch(`${url}/-/status`)).json()) as Seen
  const head = await fetch(`${url}/external/osv/all.json`, { method: 'HEAD' })
  const osv = views.find(({ kind }) => kind === 'osv')
  const isServed = osv?.snapshot === head.headers.get('x-mirror-snapshot')
  return { generation: fleet.served, views: `${osv?.state}, ${isServed ? 'same' : 'older'}` }
}

test('a reader that is killed before its views are made says after its restart that they are behind, until they are not', async () => {
  const { world, env } = await openFleet(30)
  const leader = await world.host(env('a', 'writer'))
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const settings = env('b', 'reader')
  const first = await world.serve(settings)
  const untilSaid = async (node: Node, wanted: string): Promise<{ generation: number }> => {
    for (;;) {
      const seen = await lookAt(node)
      if (seen.views === wanted) return seen
      await pause(20)
    }
  }
  const { generation } = await untilSaid(first, 'current, same')
  world.sandbox.feed.change(3)
  leader.agent.requestSync('osv', 'sync')
  const behind = await untilSaid(first, 'behind, older')
  first.child.kill('SIGKILL')
  await first.finished
  const again = await world.serve(settings)
  const said = new Set<string>()
  while (!said.has('current, same')) {
    said.add((await lookAt(again)).views)
    await pause(20)
  }
  expect(behind.generation).toBeGreaterThan(generation)
  expect([...said]).toEqual(['behind, older', 'current, same'])
})
