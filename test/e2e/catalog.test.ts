import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, createSandbox } from '../../src/sandbox/server.ts'
import { SANDBOX_KEYS } from '../../src/sandbox/service/credentials.ts'
import { catalogEnv } from '../catalog/benches.ts'
import { type Started, run, start } from '../support/command.ts'
import { QUICK } from '../support/mirror.ts'

const KEY = 'Zk3v9wq7Rt5y2Lm8'

let sandbox: Sandbox
let dir: string
let env: Record<string, string>
const started: Started[] = []

beforeEach(async () => {
  sandbox = await createSandbox({
    records: 5,
    service: { images: 2, tags: 4, packages: 2, tickets: 20, users: 3 },
  })
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-catalog-'))
  env = {
    ...QUICK,
    ...catalogEnv(sandbox),
    PATCHMIRROR_IDENTITY_MIRROR_USERS: 'true',
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
    PATCHMIRROR_SERVER_PORT: '0',
  }
})

afterEach(async () => {
  for (const { child, finished } of started.splice(0)) {
    child.kill('SIGKILL')
    await finished
  }
  await sandbox.close()
  rmSync(dir, { recursive: true, force: true })
})

async function serve(
  more: Record<string, string> = {},
): Promise<{ daemon: Started; url: string; said: string }> {
  const daemon = start(['serve'], { ...env, ...more }, dir)
  started.push(daemon)
  const said = await daemon.said(/"msg":"serving http[^"]+"/)
  return { daemon, url: /serving (http[^"]+)"/.exec(said)?.[1] ?? '', said }
}

const namesIn = async (answer: Response): Promise<string[]> =>
  ((await answer.json()) as { sources: { name: string }[] }).sources.map(({ name }) => name)

describe('patchmirror serve with a credential', () => {
  test('mirrors the catalog and the users, and tells of both', async () => {
    const { daemon, url } = await serve()
    await daemon.said(/catalog sync: complete/)
    await daemon.said(/identity sync: complete/)
    await daemon.said(/osv sync: complete/)
    await daemon.said(/feeds sync: complete/)
    await expect.poll(async () => (await fetch(`${url}/-/ready`)).status).toBe(200)
    expect((await namesIn(await fetch(`${url}/-/ready`))).sort()).toEqual([
      'catalog',
      'feeds',
      'identity',
      'osv',
    ])
    const patches = (await (await fetch(`${url}/v1/patches?limit=1000`)).json()) as {
      tickets: unknown[]
    }
    expect(patches.tickets).toHaveLength(20)
    const users = await fetch(`${url}/v1/users`)
    expect(users.status).toBe(200)
    const status = await run(['status', '--json'], env, dir)
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

  test('bound to every address asks for a key, as Basic user or Bearer, and says so at start', async () => {
    const open = await serve({ PATCHMIRROR_SERVER_HOST: '0.0.0.0' })
    const port = new URL(open.url).port
    await open.daemon.said(/no local key yet.*answer 401/)
    const denied = await fetch(`http://127.0.0.1:${port}/v1/me`)
    expect([denied.status, await denied.text()]).toEqual([
      401,
      expect.stringContaining('patchmirror keys create'),
    ])
    expect(denied.headers.has('www-authenticate')).toBe(true)
    const made = await run(['keys', 'create', '--name', 'scanner'], env, dir)
    expect(made.code).toBe(0)
    const key = /^\S{20,}$/m.exec(made.out)?.[0] ?? ''
    await open.daemon.said(/catalog sync: complete/)
    for (const authorization of [`Bearer ${key}`, `Basic ${btoa(`${key}:`)}`]) {
      const answer = () => fetch(`http://127.0.0.1:${port}/v1/me`, { headers: { authorization } })
      await expect.poll(async () => (await answer()).status).toBe(200)
    }
    expect((await fetch(`http://127.0.0.1:${port}/external/osv/all.json`)).status).not.toBe(401)
    expect((await run(['keys', 'revoke', '1'], env, dir)).code).toBe(0)
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`http://127.0.0.1:${port}/v1/me`, { headers })).status).toBe(401)
  })
})

test('a mirror without a credential is ready without the catalog', async () => {
  const plain = Object.entries(env).filter(
    ([name]) => !/_(API_KEY|CATALOG_URL|API_URL|USERS)$/.test(name),
  )
  env = Object.fromEntries(plain)
  const { daemon, url } = await serve({ PATCHMIRROR_SERVER_KEYS: KEY })
  await daemon.said(/osv sync: complete/)
  await daemon.said(/feeds sync: complete/)
  await expect.poll(async () => (await fetch(`${url}/-/ready`)).status).toBe(200)
  expect((await namesIn(await fetch(`${url}/-/ready`))).sort()).toEqual(['feeds', 'osv'])
  const headers = { authorization: `Bearer ${KEY}` }
  const answer = await fetch(`${url}/v1/me`, { headers })
  expect([answer.status, await answer.json()]).toEqual([
    404,
    expect.objectContaining({ error: 'not_in_scope', setting: 'upstream.apiKey' }),
  ])
})

describe('patchmirror sync catalog', () => {
  test('tells how far it is line by line, and exits 0, 3 for a partial mirror, 1 for a credential refused', async () => {
    const whole = await run(['sync', 'catalog'], env, dir)
    expect(whole).toMatchObject({ code: 0 })
    expect(whole.out).toMatch(/^catalog: complete \(run 1, \d+ requests, \d+ bytes\)/)
    expect(whole.err).toMatch(/catalog: fetching items and artifacts: \d+ of \d+ items/)
    const [tag = ''] = sandbox.service.ids('tags')
    sandbox.service.change('tags', tag)
    sandbox.faults.set(`/v1/patches`, { kind: 'status', status: 500 })
    const partial = await run(['sync', 'catalog'], env, dir)
    expect([partial.code, partial.out]).toEqual([3, expect.stringContaining('could not be had')])
    sandbox.faults.clear()
    const refused = await run(
      ['sync', 'catalog'],
      { ...env, PATCHMIRROR_UPSTREAM_API_KEY: 'no-such-key-here' },
      dir,
    )
    expect([refused.code, refused.out]).toEqual([1, expect.stringContaining('upstream.apiKey')])
    expect(refused.out + refused.err).not.toContain('no-such-key-here')
    const again = await run(['sync', 'catalog', '--json'], env, dir)
    expect([again.code, again.err]).toEqual([0, ''])
    expect(JSON.parse(again.out)).toMatchObject([{ source: 'catalog', state: 'complete' }])
  })

  test('without a credential is a wrong setting, exit 2, and says which', async () => {
    const plain = { ...env }
    delete plain['PATCHMIRROR_UPSTREAM_API_KEY']
    const { code, err } = await run(['sync', 'catalog'], plain, dir)
    expect([code, err]).toEqual([2, expect.stringContaining('set upstream.apiKey')])
    const without = { ...env, PATCHMIRROR_IDENTITY_MIRROR_USERS: 'false' }
    const identity = await run(['sync', 'identity'], without, dir)
    expect(identity.code).toBe(2)
    expect(identity.err).toContain('identity.mirrorUsers')
    expect(sandbox.requests.count()).toBe(0)
  })
})
