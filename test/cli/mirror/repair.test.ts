import { cpSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { databasePath, openWriter } from '../../../src/store/database/open.ts'
import { beginRepair, salvageInto } from '../../../src/store/salvage.ts'
import { keyPair } from '../../features/bundles/fixtures.ts'
import { commandHost } from '../../support/hosted.ts'
import { start } from '../../support/command.ts'
import { DAMAGES, overwriteTable, settle } from '../../support/damage.ts'
import { type World, openWorld } from '../../support/daemons.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

const run = commandHost()

/** A mirror below a gap that a full bundle filled, with a local key; its source mirror is gone from the settings. */
async function belowGap(): Promise<{ world: World; bundle: string; data: string }> {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  const key = keyPair(world.dir, 'key')
  const bundle = join(world.dir, 'full.zip')
  world.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = key.path
  for (const args of [['sync'], ['bundle', 'export', bundle]])
    expect(await world.patchmirror(...args)).toMatchObject({ code: 0 })
  const data = join(world.dir, 'below')
  delete world.env['PATCHMIRROR_UPSTREAM_API_ROOT']
  delete world.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS']
  world.env['PATCHMIRROR_DATA_DIR'] = data
  world.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = key.line
  for (const args of [
    ['bundle', 'import', bundle],
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
    const digest = (await world.patchmirror('status', '--digest')).out
    overwriteTable(databasePath(data), 'osv_body')
    const refused = await world.patchmirror('bundle', 'import', '--again', bundle)
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('patchmirror doctor --data --repair')
    const repaired = await world.patchmirror('doctor', '--data', '--repair')
    expect(repaired.code).toBe(3)
    expect(repaired.out).toMatch(/kept: 1 local key, the secret that signs links/)
    expect(repaired.out).toMatch(/waits for a full bundle of mirror [0-9a-f]{32}, number 1 or later/)
    expect(await world.patchmirror('bundle', 'import', bundle)).toMatchObject({ code: 0 })
    expect((await world.patchmirror('keys', 'list', '--json')).out).toBe(keys)
    expect((await world.patchmirror('status', '--digest')).out).toBe(digest)
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
    const content = contentOf(world.data)
    overwriteTable(databasePath(world.data), 'osv_body')
    const before = readFileSync(databasePath(world.data))
    const { PATCHMIRROR_UPSTREAM_API_ROOT: service = '' } = world.env
    world.env['PATCHMIRROR_UPSTREAM_API_ROOT'] = 'http://127.0.0.1:9'
    const refused = await world.patchmirror('doctor', '--data', '--repair')
    expect(refused.code).not.toBe(0)
    expect(refused.err).toContain('Nothing was repaired or moved')
    expect(readdirSync(world.data).filter((name) => name.includes('damaged'))).toEqual([])
    expect(readFileSync(databasePath(world.data)).equals(before)).toBe(true)
    world.env['PATCHMIRROR_UPSTREAM_API_ROOT'] = service
    expect(await world.patchmirror('doctor', '--data', '--repair')).toMatchObject({ code: 0 })
    expect(contentOf(world.data)).toEqual(content)
    expect((await world.patchmirror('status')).out).not.toContain('damaged')
  },
)

longTest('a repair that was interrupted goes on: verify says so, and --repair mirrors what is left', async () => {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  const db = openWriter(world.data)
  beginRepair(db, ['feeds', 'osv'], salvageInto(db, join(world.dir, 'none'), Date.now()))
  db.close()
  const found = await world.patchmirror('doctor', '--data')
  expect([found.code, found.out]).toEqual([
    1,
    expect.stringContaining('a repair was interrupted: not mirrored again yet: feeds, osv'),
  ])
  const repaired = await world.patchmirror('doctor', '--data', '--repair')
  expect([repaired.code, repaired.out]).toEqual([0, expect.stringContaining('mirroring again: feeds, osv')])
  expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
  expect(flagsOfDates(world.data)).toEqual([7])
})

longTest('a repair that is killed while it mirrors ends as one that was not, at the second call', async () => {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
  const content = contentOf(world.data)
  overwriteTable(databasePath(world.data), 'osv_dates')
  const stalled = world.sandbox.faults.set('/external/osv/all.json', STALL, { after: 1 })
  const { child, finished } = start(['doctor', '--data', '--repair'], world.env, world.dir)
  await expect.poll(() => stalled.hits()).toBe(1)
  child.kill('SIGKILL')
  expect(await finished).toMatchObject({ signal: 'SIGKILL' })
  stalled.clear()
  const repaired = await world.patchmirror('doctor', '--data', '--repair')
  expect([repaired.code, repaired.out]).toEqual([0, expect.stringContaining('it goes on')])
  expect(contentOf(world.data)).toEqual(content)
  expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
  expect(flagsOfDates(world.data)).toEqual([7])
})

longTest(
  'a repair that is killed while it replaces the database loses no key, and a daemon or a repair ends it',
  async () => {
    const world = await openWorld({ records: 5, service: false }, undefined, run)
    onTestFinished(() => world.close())
    expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
    settle(databasePath(world.data))
    const open = openWriter(world.data) // what comes now stays in the log
    expect(await world.patchmirror('keys', 'create', '--name', 'late')).toMatchObject({ code: 0 })
    const keys = (await world.patchmirror('keys', 'list', '--json')).out
    const copy = join(world.dir, 'copy')
    cpSync(world.data, copy, { recursive: true })
    open.close()
    world.env['PATCHMIRROR_DATA_DIR'] = copy
    DAMAGES.cut(databasePath(copy))
    const killing = { NODE_OPTIONS: `--import ${KILL_HERE}`, KILL_AT: '/.repairing/whole.db' }
    const { finished } = start(['doctor', '--data', '--repair'], { ...world.env, ...killing }, world.dir)
    expect(await finished).toMatchObject({ signal: 'SIGKILL' })
    for (const args of [['status'], ['keys', 'create', '--name', 'x'], ['doctor', '--data']])
      expect((await world.patchmirror(...args)).err).toContain('run "patchmirror doctor --data --repair" again')
    const other = join(world.dir, 'other')
    cpSync(copy, other, { recursive: true })
    const daemon = await world.host({ PATCHMIRROR_DATA_DIR: other })
    await daemon.said(/a repair was killed at its end: all is mirrored again, .* is kept as/)
    await daemon.said(/osv sync: complete/)
    await daemon.close()
    world.env['PATCHMIRROR_DATA_DIR'] = other
    expect((await world.patchmirror('keys', 'list', '--json')).out).toBe(keys)
    expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
    world.env['PATCHMIRROR_DATA_DIR'] = copy
    const repaired = await world.patchmirror('doctor', '--data', '--repair')
    expect([repaired.code, repaired.out]).toEqual([0, expect.stringMatching(/kept as [^\n]*\n[^]*it goes on/)])
    expect((await world.patchmirror('keys', 'list', '--json')).out).toBe(keys)
    expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
    expect(readdirSync(copy)).not.toContain('.repairing')
  },
)

const KILL_HERE = new URL('../../support/kill-here.ts', import.meta.url).href
const STALL = { kind: 'stall', at: 'headers' } as const

/** Returns the digests of what is stored, whenever it was. */
function contentOf(data: string): unknown[] {
  const db = openWriter(data)
  try {
    return db.prepare('SELECT source, content_digest FROM snapshot ORDER BY source').all()
  } finally {
    db.close()
  }
}

/** Returns the different flags that the dates of records have. */
function flagsOfDates(data: string): number[] {
  const db = openWriter(data)
  try {
    return db.prepare<[], number>('SELECT DISTINCT flags FROM osv_dates').pluck().all()
  } finally {
    db.close()
  }
}

test('a damaged archive is rebuilt from the records, also without an upstream', async () => {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
  delete world.env['PATCHMIRROR_UPSTREAM_API_ROOT']
  const derived = join(world.data, 'derived')
  const archive = join(derived, readdirSync(derived).find((name) => name.startsWith('osv-')) ?? '')
  const bytes = readFileSync(archive)
  writeFileSync(archive, Buffer.from(bytes).fill(0xa7, 40, 50))
  const found = await world.patchmirror('doctor', '--data')
  expect([found.code, found.out]).toEqual([1, expect.stringContaining('to rebuild the archive from the records')])
  const repaired = await world.patchmirror('doctor', '--data', '--repair')
  expect([repaired.code, repaired.out]).toEqual([0, expect.stringContaining('the archive is rebuilt')])
  expect(readFileSync(archive).equals(bytes)).toBe(true)
  expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
  expect((await world.patchmirror('status')).out).not.toContain('damaged')
})

bothTest.each(telling(['a quarantine', 'no upstream', 'a lost archive'], 'a quarantine'))(
  'a damaged record is put back from the archive, with %s',
  async (how) => {
    const world = await openWorld({ records: 60, service: false }, undefined, run)
    onTestFinished(() => world.close())
    const { feed } = world.sandbox
    expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
    const content = contentOf(world.data)
    const [id = ''] = feed.ids()
    if (how === 'a quarantine') {
      for (const one of feed.ids().slice(20)) feed.delete(one)
      expect(await world.patchmirror('sync', 'osv')).toMatchObject({ code: 4 })
    } else if (how === 'no upstream') delete world.env['PATCHMIRROR_UPSTREAM_API_ROOT']
    else rmSync(join(world.data, 'derived'), { recursive: true })
    damageRecord(world.data, id)
    expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 1 })
    const repaired = await world.patchmirror('doctor', '--data', '--repair')
    const said = how === 'a lost archive' ? 'osv: complete' : '1 damaged record put back from the archive'
    expect([repaired.code, repaired.out]).toEqual([0, expect.stringContaining(said)])
    expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
    expect(contentOf(world.data)).toEqual(content)
    if (how === 'a quarantine') expect(await world.patchmirror('approve', '3')).toMatchObject({ code: 0 })
  },
)

/** Overwrites the stored bytes of a record. */
function damageRecord(data: string, id: string): void {
  const db = openWriter(data)
  const change = db.prepare(
    'UPDATE osv_body SET bytes = zeroblob(8) WHERE rowid = (SELECT body FROM osv_record WHERE id = ?)',
  )
  expect(change.run(id).changes).toBe(1)
  db.close()
}

longTest('a damaged webhooks.db is moved aside by a repair, and found without one', async () => {
  const world = await openWorld({ records: 5, service: false }, undefined, run)
  onTestFinished(() => world.close())
  const daemon = await world.host({ PATCHMIRROR_WEBHOOKS_SECRETS: SECRET })
  await daemon.said(/feeds sync: complete/)
  await daemon.close()
  DAMAGES.header(join(world.data, 'webhooks.db'))
  const found = await world.patchmirror('doctor', '--data')
  expect([found.code, found.out]).toEqual([1, expect.stringMatching(/webhooks\.db: .*moves the file aside/)])
  const repaired = await world.patchmirror('doctor', '--data', '--repair')
  expect(repaired.code).toBe(0)
  expect(readdirSync(world.data).some((name) => name.startsWith('webhooks.db.damaged-'))).toBe(true)
  expect(await world.patchmirror('doctor', '--data')).toMatchObject({ code: 0 })
})

const SECRET = 'whsec_e3yNhqksL/3XRORmZzz0sZUzqF/kAdxd'
