import AdmZip from 'adm-zip'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { type Hosted, type World, openWorld } from '../support/daemons.ts'
import { TEST_KEY, bearer } from '../support/keys.ts'

const AUTHORIZED = { headers: bearer() }
const SOON = { interval: 50 }

const KEYS = { PATCHMIRROR_SERVER_KEYS: TEST_KEY }

let world: World
let daemon: Hosted

// Views are made some seconds after a sync: all tests wait for those of one daemon.
beforeAll(async () => {
  const service = { images: 2, tags: 6, packages: 2, tickets: 5, users: 2 }
  world = await openWorld({ records: 30, service }, () => KEYS)
  daemon = await world.host(catalogEnv(world.sandbox))
})

afterAll(() => world.close())

const statusOf = async (url: string, init?: RequestInit): Promise<number> => {
  const answer = await fetch(url, init)
  await answer.arrayBuffer()
  return answer.status
}

const snapshotOf = async (path: string): Promise<string | null> => {
  const answer = await fetch(daemon.url + path, { method: 'HEAD' })
  return answer.headers.get('x-mirror-snapshot')
}

test('the daemon makes the views for scanners after its first sync', async () => {
  const { url } = daemon
  await expect.poll(() => statusOf(`${url}/osv/ecosystems.txt`), SOON).toBe(200)
  expect(await snapshotOf('/osv/Root/all.zip')).toBe(await snapshotOf('/external/osv/all.zip'))
  const listed = await (await fetch(`${url}/osv/Root/modified_id.csv`)).text()
  expect(listed.trim().split('\n')).toHaveLength(30)
  const status = (await (await fetch(`${url}/-/status`)).json()) as { views: object[] }
  expect(status.views).toContainEqual(expect.objectContaining({ kind: 'osv', state: 'current' }))
  const metrics = await (await fetch(`${url}/-/metrics`)).text()
  expect(metrics).toContain('patchmirror_views_current{kind="osv"} 1')
})

test('the daemon makes the views for scanners again after a change of upstream', async () => {
  await expect.poll(() => statusOf(`${daemon.url}/osv/ecosystems.txt`), SOON).toBe(200)
  const before = await snapshotOf('/osv/all.zip')
  world.sandbox.feed.change(1)
  daemon.agent.requestSync('osv', 'sync')
  await expect.poll(() => snapshotOf('/osv/all.zip'), SOON).not.toBe(before)
  expect(await snapshotOf('/osv/all.zip')).toBe(await snapshotOf('/external/osv/all.zip'))
})

test('the VEX repository has every OpenVEX document of the catalog, and requires a key', async () => {
  const { url } = daemon
  const manifestUrl = `${url}/.well-known/vex-repository.json`
  await expect.poll(() => statusOf(manifestUrl, AUTHORIZED), SOON).toBe(200)
  const answer = await fetch(manifestUrl, AUTHORIZED)
  const manifest = (await answer.json()) as { versions: { locations: { url: string }[] }[] }
  const location = `${url}/vex/v0.1/vex-data.zip`
  expect(manifest.versions).toEqual([{ spec_version: '0.1', locations: [{ url: location }], update_interval: '1h' }])
  for (const path of [manifestUrl, location]) expect(await statusOf(path)).toBe(401)
  const sent = await fetch(location, AUTHORIZED)
  const zip = new AdmZip(Buffer.from(await sent.arrayBuffer()))
  expect(sent.headers.get('cache-control')).toMatch(/^private/)
  const etag = sent.headers.get('etag') ?? ''
  const again = { headers: { ...AUTHORIZED.headers, 'if-none-match': etag } }
  expect(await statusOf(location, again)).toBe(304)
  expect(
    await statusOf(manifestUrl, {
      ...again,
      headers: { ...again.headers, 'if-none-match': answer.headers.get('etag') ?? '' },
    }),
  ).toBe(304)

  const index = JSON.parse(zip.readAsText('index.json')) as {
    updated_at: string
    packages: { id: string; location: string; format: string }[]
  }
  expect(Date.parse(index.updated_at)).toBeGreaterThan(0)
  const said = new Set<string>()
  for (const { id, location, format } of index.packages) {
    const { statements } = JSON.parse(zip.readAsText(location)) as Vex
    expect(format).toBe('openvex')
    for (const one of statements)
      for (const product of one.products)
        if (product['@id'].startsWith(`${id}@`)) said.add(told(one.vulnerability.name, product['@id'], one.status))
  }
  const expected = await statementsOf(url)
  expect(expected.size).toBeGreaterThan(3)
  expect([...expected].filter((one) => !said.has(one))).toEqual([]) // beside those of artifact sets

  // A daemon on the same data that has no credential serves it too, as on the disconnected side.
  await daemon.close()
  const other = await world.host()
  const served = await fetch(`${other.url}/vex/v0.1/vex-data.zip`, AUTHORIZED)
  expect([served.status, served.headers.get('etag')]).toEqual([200, etag])
})

interface Vex {
  readonly '@context'?: string
  readonly statements: {
    readonly vulnerability: { readonly name: string }
    readonly products: { readonly '@id': string }[]
    readonly status: string
  }[]
}

const told = (...words: string[]): string => words.join(' ')

/** What the OpenVEX documents of all tags say, asked one by one. */
async function statementsOf(url: string): Promise<Set<string>> {
  const said = new Set<string>()
  const { data } = (await (await fetch(`${url}/v1/tags/`, AUTHORIZED)).json()) as {
    data: { id: string }[]
  }
  for (const { id } of data) {
    const answer = await fetch(`${url}/v1/tags/${id}/vex`, AUTHORIZED)
    if (answer.status !== 200) continue
    const { vex_file_url: link } = (await answer.json()) as { vex_file_url: string }
    const vex = (await (await fetch(link)).json()) as Vex
    if (vex['@context'] === undefined) continue
    for (const { vulnerability, products, status } of vex.statements)
      for (const product of products) said.add(told(vulnerability.name, product['@id'], status))
  }
  return said
}
