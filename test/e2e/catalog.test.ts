import { afterEach, beforeEach, describe, expect } from 'vitest'
import { SANDBOX_KEYS } from '../sandbox/service/credentials.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { type World, openWorld } from '../support/daemons.ts'
import { commandHost } from '../support/hosted.ts'
import { TEST_KEY, bearer, localKey } from '../support/keys.ts'
import { longTest, test } from '../support/tables.ts'

const command = commandHost()
let world: World

beforeEach(async () => {
  const service = { images: 2, tags: 4, packages: 2, tickets: 20, users: 3 }
  const envOf = (sandbox: World['sandbox']): World['env'] => ({
    ...catalogEnv(sandbox),
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
  })
  world = await openWorld({ records: 5, service }, envOf, command)
})

afterEach(() => world.close())

const namesIn = async (answer: Response): Promise<string[]> =>
  ((await answer.json()) as { sources: { name: string }[] }).sources.map(({ name }) => name)

describe('a daemon with a credential', () => {
  test('mirrors the catalog and the users, and reports both', async () => {
    const { url, ...daemon } = await world.host()
    await daemon.said(/catalog sync: complete/)
    await daemon.said(/identity sync: complete/)
    await daemon.said(/osv sync: complete/)
    await daemon.said(/feeds sync: complete/)
    await expect.poll(async () => (await fetch(`${url}/-/ready`)).status).toBe(200)
    expect((await namesIn(await fetch(`${url}/-/ready`))).sort()).toEqual(['catalog', 'feeds', 'identity', 'osv'])
    const headers = localKey(world.data)
    const patches = (await (await fetch(`${url}/v1/patches?limit=1000`, { headers })).json()) as {
      tickets: unknown[]
    }
    expect(patches.tickets).toHaveLength(20)
    const users = await fetch(`${url}/v1/users`, { headers })
    expect(users.status).toBe(200)
    const status = await world.patchmirror('status', '--json')
    expect(status.code).toBe(0)
    const { sources } = JSON.parse(status.out) as {
      sources: { name: string; state: string; records: number }[]
    }
    for (const name of ['catalog', 'identity']) {
      const source = sources.find((one) => one.name === name)
      expect(source).toMatchObject({ state: 'complete' })
      expect(source?.records).toBeGreaterThan(0)
    }
    for (const key of Object.values(SANDBOX_KEYS)) expect(status.out).not.toContain(key)
  })

  longTest('that is bound to every address requires a key, as Basic user or Bearer, and logs it at start', async () => {
    const open = await world.host({ PATCHMIRROR_SERVER_LISTEN: '0.0.0.0:0' })
    const port = new URL(open.url).port
    await open.said(/a key for the private paths was created/)
    const denied = await fetch(`http://127.0.0.1:${port}/v1/me`)
    expect([denied.status, await denied.text()]).toEqual([401, expect.stringContaining('patchmirror keys create')])
    expect(denied.headers.has('www-authenticate')).toBe(true)
    const made = await world.patchmirror('keys', 'create', '--name', 'scanner')
    expect(made.code).toBe(0)
    const key = /^\S{20,}$/m.exec(made.out)?.[0] ?? ''
    await open.said(/catalog sync: complete/)
    for (const authorization of [`Bearer ${key}`, `Basic ${btoa(`${key}:`)}`]) {
      const answer = () => fetch(`http://127.0.0.1:${port}/v1/me`, { headers: { authorization } })
      await expect.poll(async () => (await answer()).status).toBe(200)
    }
    expect((await fetch(`http://127.0.0.1:${port}/external/osv/all.json`)).status).not.toBe(401)
    expect((await world.patchmirror('keys', 'revoke', '2')).code).toBe(0)
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`http://127.0.0.1:${port}/v1/me`, { headers })).status).toBe(401)
  })
})

longTest('a mirror without a credential is ready without the catalog', async () => {
  const plain = Object.entries(world.env).filter(
    ([name]) => !/_(API_KEY|CATALOG_URL|API_URL|PERSONAL_DATA)$/.test(name),
  )
  world.env = Object.fromEntries(plain)
  const { url, ...daemon } = await world.host({ PATCHMIRROR_SERVER_KEYS: TEST_KEY })
  await daemon.said(/osv sync: complete/)
  await daemon.said(/feeds sync: complete/)
  await expect.poll(async () => (await fetch(`${url}/-/ready`)).status).toBe(200)
  expect((await namesIn(await fetch(`${url}/-/ready`))).sort()).toEqual(['feeds', 'osv'])
  const answer = await fetch(`${url}/v1/me`, { headers: bearer() })
  expect([answer.status, await answer.json()]).toEqual([
    404,
    expect.objectContaining({ error: 'not_in_scope', setting: 'upstream.apiKey' }),
  ])
})

describe('patchmirror sync catalog', () => {
  longTest(
    'prints its progress line by line, and exits 0, 3 for a partial mirror, 1 for a refused credential',
    async () => {
      const whole = await world.patchmirror('sync', 'catalog')
      expect(whole).toMatchObject({ code: 0 })
      expect(whole.out).toMatch(/^catalog: complete \(run 1, \d+ requests, \d+ bytes\)/)
      expect(whole.err).toMatch(/catalog: requesting items and artifacts: \d+ of \d+ items/)
      const [tag = ''] = world.sandbox.service.ids('tags')
      world.sandbox.service.change('tags', tag)
      world.sandbox.faults.set(`/v1/patches`, { kind: 'status', status: 500 })
      const partial = await world.patchmirror('sync', 'catalog')
      expect([partial.code, partial.out]).toEqual([3, expect.stringContaining('could not be fetched')])
      world.sandbox.faults.clear()
      const refused = await command(
        ['sync', 'catalog'],
        { ...world.env, PATCHMIRROR_UPSTREAM_API_KEY: 'no-such-key-here' },
        world.dir,
      )
      expect([refused.code, refused.out]).toEqual([1, expect.stringContaining('upstream.apiKey')])
      expect(refused.out + refused.err).not.toContain('no-such-key-here')
      const again = await world.patchmirror('sync', 'catalog', '--json')
      expect([again.code, again.err]).toEqual([0, ''])
      expect(JSON.parse(again.out)).toMatchObject([{ source: 'catalog', state: 'complete' }])
    },
  )

  test('exits 2 without a credential, and names the setting', async () => {
    const plain = { ...world.env }
    delete plain['PATCHMIRROR_UPSTREAM_API_KEY']
    const { code, err } = await command(['sync', 'catalog'], plain, world.dir)
    expect([code, err]).toEqual([2, expect.stringContaining('set upstream.apiKey')])
    const without = { ...world.env, PATCHMIRROR_CATALOG_PERSONAL_DATA: ',' }
    const identity = await command(['sync', 'identity'], without, world.dir)
    expect(identity.code).toBe(2)
    expect(identity.err).toContain('catalog.personalData')
    expect(world.sandbox.requests.count()).toBe(0)
  })
})
