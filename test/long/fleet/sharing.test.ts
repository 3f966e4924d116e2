import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { FleetStatus } from '../../../src/base/reports/fleet.ts'
import { target } from '../../features/relay/targets.ts'
import { bearer } from '../../support/keys.ts'
import { type Node, openFleet, untilFleet } from '../../support/fleet/daemons.ts'

interface Shown {
  readonly contentDigest: string | null
  readonly sources: readonly { readonly name: string; readonly scope: object | null }[]
}

const shown = async ({ url }: Node): Promise<Shown> => (await (await fetch(`${url}/-/status`)).json()) as Shown

test('a reader has the scope and the content of the leader, opens its links, and purges its own edge after each flip', async () => {
  const { world, env } = await openFleet(30)
  const secret = join(world.dir, 'links')
  writeFileSync(secret, 'x'.repeat(40))
  const edge = await target(200)
  const shared = { PATCHMIRROR_SERVER_LINK_SECRET_FILE: secret }
  const leader = await world.host({
    ...env('a', 'writer'),
    ...shared,
    PATCHMIRROR_OSV_SCOPE: '!npm',
  })
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const reader = await world.host({
    ...env('b', 'reader'),
    ...shared,
    PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '60',
    PATCHMIRROR_EDGE_TAG_HEADER: 'xkey',
    PATCHMIRROR_EDGE_PURGE: edge.url,
  })
  const same = async (): Promise<void> => {
    const isSettled = ({ seen, served, holdingBackSince }: FleetStatus): boolean =>
      served > 0 && served === seen && holdingBackSince === null
    const { served } = await untilFleet(leader, isSettled)
    await untilFleet(reader, (own) => own.served >= served)
    // A report is built once a second.
    await expect.poll(async () => (await shown(reader)).contentDigest).toBe((await shown(leader)).contentDigest)
    const { contentDigest, sources } = await shown(reader)
    expect(contentDigest).toMatch(/^[\da-f]{64}$/)
    const osv = sources.find(({ name }) => name === 'osv')
    expect(osv?.scope).toEqual({ include: [], exclude: ['npm'] })
  }
  await same()

  const purged = (): number => edge.got.filter(({ headers }) => String(headers['xkey']).includes('pm-osv')).length
  await expect.poll(purged).toBeGreaterThan(0)
  const before = purged()
  const [id = ''] = world.sandbox.feed.ids().filter((one) => !/NPM/i.test(one))
  const text = world.sandbox.feed.record(id).toString()
  world.sandbox.feed.put(id, Buffer.from(`${text} `), '2026-09-01T00:00:00Z')
  const path = `/external/osv/${encodeURIComponent(id)}.json`
  leader.agent.requestSync('osv', 'sync')
  await expect.poll(async () => (await fetch(reader.url + path)).text()).toBe(`${text} `)
  await expect.poll(purged).toBeGreaterThan(before)
  await same()

  const tags = (await (await fetch(`${reader.url}/v1/tags/`, { headers: bearer() })).json()) as {
    data: { id: string }[]
  }
  const sbom = await fetch(`${reader.url}/v1/tags/${tags.data[0]?.id ?? ''}/sbom`, { headers: bearer() })
  const link = new URL(Object.values((await sbom.json()) as Record<string, string>)[0] ?? '')
  for (const { url } of [leader, reader]) expect((await fetch(url + link.pathname + link.search)).status).toBe(200)
})
