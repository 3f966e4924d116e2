import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { databasePath } from '../../../src/store/database/open.ts'
import { keyPair } from '../../bundle/fixtures.ts'
import { commandHost } from '../../support/hosted.ts'
import { DAMAGES, overwriteTable } from '../../support/damage.ts'
import { type World, openWorld } from '../../support/daemons.ts'
import { longTest } from '../../support/tables.ts'

const run = commandHost()

/** A mirror below a gap that a full bundle filled, with a local key; its source mirror is gone from the settings. */
async function belowGap(): Promise<{ world: World; bundle: string; data: string }> {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  const key = keyPair(world.dir, 'key')
  const bundle = join(world.dir, 'full.zip')
  world.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = key.path
  for (const args of [['sync'], ['export', bundle]])
    expect(await world.patchmirror(...args)).toMatchObject({ code: 0 })
  const data = join(world.dir, 'below')
  delete world.env['PATCHMIRROR_UPSTREAM_API_ROOT']
  delete world.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS']
  world.env['PATCHMIRROR_DATA_DIR'] = data
  world.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = key.line
  for (const args of [
    ['import', bundle],
    ['keys', 'create', '--name', 'ci'],
  ])
    expect(await world.patchmirror(...args)).toMatchObject({ code: 0 })
  return { world, bundle, data }
}

longTest(
  'a damaged mirror below a gap is repaired to the end: it names the bundle, takes it, and is ready',
  async () => {
    const { world, bundle, data } = await belowGap()
    const keys = (await world.patchmirror('keys', 'list', '--json')).out
    const digest = (await world.patchmirror('digest')).out
    overwriteTable(databasePath(data), 'osv_body')
    const refused = await world.patchmirror('import', '--again', bundle)
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('patchmirror verify --repair')
    const repaired = await world.patchmirror('verify', '--repair')
    expect(repaired.code).toBe(3)
    expect(repaired.out).toMatch(/kept: 1 local key, the secret that signs links/)
    expect(repaired.out).toMatch(
      /waits for a full bundle of mirror [0-9a-f]{32}, number 1 or later/,
    )
    expect(await world.patchmirror('import', bundle)).toMatchObject({ code: 0 })
    expect((await world.patchmirror('keys', 'list', '--json')).out).toBe(keys)
    expect((await world.patchmirror('digest')).out).toBe(digest)
    const daemon = await world.host({}, true)
    expect((await fetch(`${daemon.url}/-/ready`)).status).toBe(200)
  },
)

longTest(
  'a repair changes nothing while the service does not answer, and mirrors everything again when it does',
  async () => {
    const world = await openWorld({ records: 5, service: false }, undefined, run)
    onTestFinished(() => world.close())
    expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
    const digest = (await world.patchmirror('digest')).out
    overwriteTable(databasePath(world.data), 'osv_body')
    const before = readFileSync(databasePath(world.data))
    const { PATCHMIRROR_UPSTREAM_API_ROOT: service = '' } = world.env
    world.env['PATCHMIRROR_UPSTREAM_API_ROOT'] = 'http://127.0.0.1:9'
    const refused = await world.patchmirror('verify', '--repair')
    expect(refused.code).not.toBe(0)
    expect(refused.err).toContain('Nothing was repaired or moved')
    expect(readdirSync(world.data).filter((name) => name.includes('damaged'))).toEqual([])
    expect(readFileSync(databasePath(world.data)).equals(before)).toBe(true)
    world.env['PATCHMIRROR_UPSTREAM_API_ROOT'] = service
    expect(await world.patchmirror('verify', '--repair')).toMatchObject({ code: 0 })
    expect((await world.patchmirror('digest')).out).toBe(digest)
  },
)

test('a damaged webhooks.db is moved aside by a repair, and found without one', async () => {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  const daemon = await world.host({ PATCHMIRROR_WEBHOOKS_SECRETS: SECRET })
  await daemon.said(/feeds sync: complete/)
  await daemon.close()
  DAMAGES.header(join(world.data, 'webhooks.db'))
  const found = await world.patchmirror('verify')
  expect([found.code, found.out]).toEqual([
    1,
    expect.stringMatching(/webhooks\.db: .*moves the file aside/),
  ])
  const repaired = await world.patchmirror('verify', '--repair')
  expect(repaired.code).toBe(0)
  expect(readdirSync(world.data).some((name) => name.startsWith('webhooks.db.damaged-'))).toBe(true)
  expect(await world.patchmirror('verify')).toMatchObject({ code: 0 })
})

const SECRET = 'whsec_e3yNhqksL/3XRORmZzz0sZUzqF/kAdxd'
