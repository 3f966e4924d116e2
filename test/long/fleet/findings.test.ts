import { join } from 'node:path'
import { expect, test } from 'vitest'
import { affecting, componentsOf } from '../../features/findings/fixtures.ts'
import { bearer } from '../../support/keys.ts'
import { type Node, openFleet } from '../../support/fleet/daemons.ts'

interface Findings {
  readonly osv: { readonly snapshot: string }
  readonly catalog: { readonly snapshot: string } | null
  readonly tags: readonly { readonly id: string; readonly counts?: { readonly findings: number } }[]
}

async function ask({ url }: Node, path: string): Promise<unknown> {
  const answer = await fetch(url + path, { headers: bearer() })
  return answer.ok ? answer.json() : answer.status
}

/** The findings of a mirror and the snapshots that they are of; null before the first judgement. */
async function findingsOf(node: Node): Promise<(Pick<Findings, 'tags'> & { of: unknown[] }) | null> {
  const found = await ask(node, '/-/tags/findings')
  if (typeof found !== 'object') return null
  const { osv, catalog, tags } = found as Findings
  return { of: [osv.snapshot, catalog?.snapshot], tags }
}

/** The snapshots that a mirror serves. */
async function served(node: Node): Promise<unknown[]> {
  const of = async (path: string): Promise<string | null> =>
    (await fetch(node.url + path, { headers: bearer() })).headers.get('x-mirror-snapshot')
  return [await of('/external/osv/all.json'), await of('/v1/tags')]
}

test('the mirrors of a fleet judge the tags by what each of them serves, and come to the same', async () => {
  const { world, env } = await openFleet(30)
  const leader = await world.host(env('a', 'writer'))
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const reader = await world.host(env('b', 'reader'))
  const same = async (): Promise<Findings['tags']> => {
    await expect
      .poll(async () => {
        const own = await findingsOf(reader)
        const of = await served(reader)
        return own !== null && own.of.join() === of.join() && of.join() === (await served(leader)).join()
      })
      .toBe(true)
    const own = await findingsOf(reader)
    await expect.poll(() => findingsOf(leader)).toEqual(own)
    return own?.tags ?? []
  }
  expect((await same()).length).toBe(4)

  const [one] = componentsOf(join(world.dir, 'b'))
  if (one === undefined) throw new Error('no component')
  const record = { id: 'T-1', modified: '2026-09-01T00:00:00Z', ...affecting(one.ecosystem, one.name, null) }
  world.sandbox.feed.put('T-1', JSON.stringify(record), record.modified)
  const count = async (): Promise<number> =>
    (await same()).reduce((sum, { counts }) => sum + (counts?.findings ?? 0), 0)
  const before = await count()
  leader.agent.requestSync('osv', 'sync')
  await expect.poll(count).toBeGreaterThan(before)
  const changed = async (node: Node): Promise<unknown[]> => {
    const { changes } = (await ask(node, '/-/tags/changes')) as { changes: Record<string, unknown>[] }
    return changes.map(({ at: _, ...change }) => change)
  }
  expect((await changed(reader)).length).toBeGreaterThan(0)
  expect(await changed(reader)).toEqual(await changed(leader))
})
