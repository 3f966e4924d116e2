import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect } from 'vitest'
import { type World, openWorld } from '../support/daemons.ts'
import { commandHost } from '../support/hosted.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { affecting, sbomOf } from '../features/findings/fixtures.ts'
import { longTest, test } from '../support/tables.ts'

/** A mirror (the upper one) of the service, and a mirror of that mirror (the lower one). */
const command = commandHost()
const KEY = 'a-key-of-the-upper-mirror'
let world: World

beforeEach(async () => {
  const service = { images: 2, tags: 4, packages: 2, tickets: 3 }
  world = await openWorld(
    { records: 30, service },
    (sandbox) => ({ ...catalogEnv(sandbox), PATCHMIRROR_SERVER_KEYS: KEY }),
    command,
  )
})

afterEach(() => world.close())

interface StatusBody {
  readonly sources: readonly { readonly name: string; readonly asOf: string }[]
}

/** Runs a command of the lower mirror. */
function lower(upper: string, ...words: string[]) {
  const env = {
    PATCHMIRROR_UPSTREAM_API_ROOT: upper,
    PATCHMIRROR_UPSTREAM_API_KEY: KEY,
    PATCHMIRROR_DATA_DIR: join(world.dir, 'lower'),
    PATCHMIRROR_CATALOG_SCOPE: 'all',
  }
  return command(words, { ...world.env, ...env }, world.dir)
}

longTest('a mirror of a mirror knows what the upper one lacks, and how old its data are', async () => {
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  const { feed, faults } = world.sandbox
  const [added = ''] = feed.add(1)
  faults.set(`/external/osv/${added}.json`, { kind: 'status', status: 500 })
  faults.set('/external/osv/all.zip', { kind: 'status', status: 500 })
  expect((await world.patchmirror('sync', 'osv')).code).toBe(3)
  const upper = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  const first = await lower(upper.url, 'sync', 'osv')
  expect([first.code, first.out]).toEqual([3, expect.stringContaining('upstream is a mirror, and lacks records')])
  const asked = await lower(upper.url, 'show', added)
  expect([asked.code, asked.err]).toEqual([3, expect.stringContaining('upstream is a mirror, and lacks records')])
  const head = await fetch(`${upper.url}/external/osv/all.json`)
  expect(head.headers.get('x-mirror-incomplete')).toBe('records')
  const status = JSON.parse((await lower(upper.url, 'status', '--json')).out) as StatusBody
  expect(status.sources.find(({ name }) => name === 'osv')?.asOf).toBe(head.headers.get('x-mirror-as-of'))
  faults.clear()
  await upper.close()
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  const again = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  expect(await lower(again.url, 'sync', 'osv')).toMatchObject({ code: 0 })
  expect((await lower(again.url, 'show', added)).code).toBe(0)
})

longTest('a mirror of a mirror that has only a part of the records says so, unless it wants no more', async () => {
  world.env['PATCHMIRROR_OSV_SCOPE'] = 'npm,PyPI'
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  const upper = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  for (const scope of ['npm,PyPI', 'npm']) {
    world.env['PATCHMIRROR_OSV_SCOPE'] = scope
    expect([scope, (await lower(upper.url, 'sync', 'osv')).code]).toEqual([scope, 0])
  }
  world.env['PATCHMIRROR_OSV_SCOPE'] = ','
  const all = await lower(upper.url, 'sync', 'osv')
  expect([all.code, all.out]).toEqual([
    3,
    expect.stringContaining('upstream is a mirror of a part of the records: include PyPI, npm'),
  ])
})

longTest('what the scope of the upper mirror leaves out is not taken for what the service does not have', async () => {
  world.env['PATCHMIRROR_CATALOG_SCOPE'] = 'subscribed'
  world.env['PATCHMIRROR_CATALOG_PATTERNS'] = '!image:*'
  await world.patchmirror('sync', 'catalog')
  const upper = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  const [tag = ''] = world.sandbox.service.ids('tags')
  const sbom = `/v1/tags/${tag}/sbom`
  const refused = await fetch(`${upper.url}${sbom}`, { headers: { authorization: `Bearer ${KEY}` } })
  expect([refused.status, refused.headers.get('x-mirror-incomplete')]).toEqual([
    404,
    'catalog.scope or catalog.patterns',
  ])
  world.env['PATCHMIRROR_CATALOG_PATTERNS'] = ','
  expect(await lower(upper.url, 'sync', 'catalog')).toMatchObject({ code: 3 })
  const served = await lower(upper.url, 'show', tag)
  expect(served.out).toMatch(/sbom +could not be fetched/)
  expect(served.out).toMatch(/sbom .* upstream answered 404 .*; upstream is a mirror, and may lack it/)
})

test('a feed that the upper mirror does not mirror is not taken for one that the service does not have', async () => {
  expect((await world.patchmirror('sync', 'feeds')).code).toBe(0)
  const upper = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  world.env['PATCHMIRROR_FEEDS_EXTRA_PATHS'] = '/external/extra'
  const { code, out } = await lower(upper.url, 'sync', 'feeds')
  expect([code, out]).toEqual([3, expect.stringMatching(/extra: upstream answered 404.*may lack it/)])
})

longTest('a mirror of a mirror keeps what the upper one does not list any more because it lacks it', async () => {
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  const whole = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  expect((await lower(whole.url, 'sync', 'osv')).code).toBe(0)
  await whole.close()
  world.env['PATCHMIRROR_OSV_SCOPE'] = '!npm'
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  const upper = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  world.env['PATCHMIRROR_OSV_SCOPE'] = ','
  const refused = await lower(upper.url, 'sync', 'osv')
  expect([refused.code, refused.out]).toEqual([
    4,
    expect.stringMatching(
      /would remove \d+ records? that may still be listed: upstream is a mirror of a part .*exclude npm/,
    ),
  ])
  const run = /approve or reject run (\d+)/.exec(refused.out)?.[1] ?? ''
  expect((await lower(upper.url, 'approve', run)).code).toBe(3)
  const below = await world.host({
    LIMIT_SYNC_CATCH_UP: 'false',
    PATCHMIRROR_UPSTREAM_API_ROOT: upper.url,
    PATCHMIRROR_DATA_DIR: join(world.dir, 'lower'),
  })
  const query = { method: 'POST', body: JSON.stringify({ package: { ecosystem: 'npm', name: 'a' } }) }
  await expect.poll(async () => (await fetch(`${below.url}/osv/v1/query`, query)).status).toBe(400)
  const answer = await (await fetch(`${below.url}/osv/v1/query`, query)).text()
  expect(answer).toContain('osv.scope of the mirror that is upstream leaves them out (exclude npm)')
})

longTest(
  'findings that go from a mirror of a mirror because the upper one has other records are not taken for fixed',
  async () => {
    const { feed, service } = world.sandbox
    const stamp = '2026-05-01T00:00:00.001Z'
    feed.put('T-1', JSON.stringify({ id: 'T-1', modified: stamp, ...affecting('Debian:12', 'curl', null) }), stamp)
    const [tag = ''] = service.ids('tags')
    service.writeArtifact('tag', tag, 'sbom', sbomOf('app', 'pkg:deb/debian/curl@7.88.1-9?distro=debian-12'))
    expect((await world.patchmirror('sync')).code).toBe(0)
    const whole = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
    expect((await lower(whole.url, 'sync')).code).toBe(0)
    await world.host({
      LIMIT_SYNC_CATCH_UP: 'false',
      PATCHMIRROR_UPSTREAM_API_ROOT: whole.url,
      PATCHMIRROR_UPSTREAM_API_KEY: KEY,
      PATCHMIRROR_DATA_DIR: join(world.dir, 'lower'),
      PATCHMIRROR_CATALOG_SCOPE: 'all',
    })
    const findings = async () => (await lower(whole.url, 'list', 'findings', tag)).out
    await expect.poll(findings).toMatch(/^findings +1$/m)
    await whole.close()
    world.env['PATCHMIRROR_OSV_SCOPE'] = '!Debian:12'
    expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
    const upper = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
    world.env['PATCHMIRROR_OSV_SCOPE'] = ','
    const { out } = await lower(upper.url, 'sync', 'osv')
    const run = /approve or reject run (\d+)/.exec(out)?.[1] ?? ''
    expect((await lower(upper.url, 'approve', run)).code).toBe(3)
    await expect.poll(findings).not.toMatch(/^findings +1$/m)
    const changed = await lower(upper.url, 'changes', '--findings', '--json')
    const { changes } = JSON.parse(changed.out) as { changes: readonly object[] }
    expect(changes).toMatchObject([{ cause: 'scope', newFindings: 0, goneFindings: 1 }])
    const { out: words } = await lower(upper.url, 'changes', '--findings')
    expect(words).toContain('1 finding gone (other records are mirrored: osv.scope)')
  },
)

longTest('a mirror of a mirror keeps what is newer than the data of the upper one', async () => {
  expect((await world.patchmirror('sync')).code).toBe(0)
  const backup = join(world.dir, 'backup')
  cpSync(world.data, backup, { recursive: true })
  await setTimeout(1_100) // dates of HTTP are whole seconds
  world.sandbox.feed.add(1)
  expect((await world.patchmirror('sync')).code).toBe(0)
  const newer = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  expect((await lower(newer.url, 'sync')).code).toBe(0)
  await newer.close()
  const older = await world.host({ LIMIT_SYNC_CATCH_UP: 'false', PATCHMIRROR_DATA_DIR: backup })
  world.sandbox.feed.change(1)
  const before = (await lower(older.url, 'status', '--json')).out
  const refused = await lower(older.url, 'sync')
  expect(refused.code).toBe(1)
  expect(refused.out + refused.err).toMatch(
    /osv: failed .*upstream is a mirror, and its data of .* is older than what is stored here/,
  )
  const datesOf = (text: string) => (JSON.parse(text) as StatusBody).sources.map(({ name, asOf }) => [name, asOf])
  expect(datesOf((await lower(older.url, 'status', '--json')).out)).toEqual(datesOf(before))
})
