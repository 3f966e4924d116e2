import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { databasePath } from '../../src/store/database/open.ts'
import { settle } from '../support/damage.ts'
import { type World, openWorld } from '../support/daemons.ts'
import { copyFilledFolder } from '../support/filled-folder.ts'
import { commandHost } from '../support/hosted.ts'
import { longTest, test } from '../support/tables.ts'

const command = commandHost()
const QUIET = { LIMIT_SYNC_CATCH_UP: 'false' }

/** A world with a filled data folder, which no daemon serves yet. */
async function filled(): Promise<World> {
  const world = await openWorld({ records: 10, service: false }, undefined, command)
  onTestFinished(() => world.close())
  expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
  return world
}

const WRITES = [
  ['sync', 'osv'],
  ['keys', 'create'],
  ['doctor', '--data', '--repair'],
]

longTest('a sync without a daemon says that the database was lost, of which it makes a new one', async () => {
  const world = await filled()
  writeFileSync(join(world.data, 'local.key'), 'a key\n')
  rmSync(databasePath(world.data))
  const { code, err } = await world.patchmirror('sync', 'osv')
  expect([code, err]).toEqual([
    0,
    expect.stringMatching(/mirror\.db is missing, and local\.key is left: .* A new one is made/),
  ])
  expect((await world.patchmirror('sync', 'osv')).err).not.toContain('is missing')
})

longTest(
  'no command makes a new mirror.db under a daemon whose own was deleted, and each says what to do',
  async () => {
    const world = await filled()
    const daemon = await world.host(QUIET)
    const path = databasePath(world.data)
    renameSync(path, join(world.dir, 'moved'))
    for (const args of WRITES) {
      const { code, err } = await world.patchmirror(...args)
      expect([args, code === 0, err]).toEqual([args, false, expect.stringMatching(/Without one, stop the daemon/)])
      expect(existsSync(path)).toBe(false)
    }
    await daemon.said(
      /the file is not there any more\)\. If it was moved, put it back .* If there is a backup.*start it again/,
    )
    const { code, out } = await world.patchmirror('status')
    expect(code).toBe(1)
    expect(out).toMatch(
      /mirror\.db is damaged \(the file is not there any more\)\. If it was moved, put it back .* If there is a backup.*start it again/,
    )
    expect(out).not.toContain('the log says what to do')
    expect((await world.patchmirror('doctor')).out).toMatch(/the file is not there any more/)
    renameSync(join(world.dir, 'moved'), path)
    expect(await world.patchmirror('sync', 'osv')).toMatchObject({ code: 0 })
  },
)

longTest('a daemon whose mirror.db was replaced by another stays damaged, and no command writes to that', async () => {
  const world = await filled()
  const daemon = await world.host(QUIET)
  const path = databasePath(world.data)
  const other = databasePath(await copyFilledFolder({ sandbox: { records: 3 } }, ['osv']))
  settle(other)
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix)
  copyFileSync(other, path)
  const { code, err } = await world.patchmirror('sync', 'osv')
  expect([code, err]).toEqual([1, expect.stringMatching(/not the one that the daemon opened\)\. Stop the daemon/)])
  expect(readFileSync(path).equals(readFileSync(other))).toBe(true)
  const log = await daemon.said(/not the one that the daemon opened/)
  expect(log).not.toContain('can be read again')
  expect((await fetch(`${daemon.url}/-/ready`)).status).toBe(503)
  await daemon.close()
  const again = await world.host(QUIET)
  const ready = await fetch(`${again.url}/-/ready`)
  expect(await ready.json()).not.toHaveProperty('storage.state', 'damaged')
})

test.each([true, false])(
  'a lost mirror.db is noticed at the next start, and its key works on (a sync before: %s)',
  async (syncs) => {
    const world = await filled()
    const first = await world.host(QUIET)
    const file = join(world.data, 'local.key')
    const key = readFileSync(file, 'utf8')
    const open = async (url: string, user: string): Promise<number> =>
      (await fetch(`${url}/v1/me`, { headers: { authorization: `Basic ${btoa(`${user}:`)}` } })).status
    const code = await open(first.url, key.trim())
    expect([code, await open(first.url, 'pmk_other')]).toEqual([expect.not.toSatisfy((is) => is === 401), 401])
    await first.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(databasePath(world.data) + suffix, { force: true })
    const told = await world.patchmirror('status')
    expect([told.code, told.err]).toEqual([
      3,
      expect.stringMatching(
        /mirror\.db is missing, and local\.key is left: it may have been lost\. .*\("patchmirror serve"\)/,
      ),
    ])
    expect((await world.patchmirror('doctor')).out).toMatch(/mirror\.db is missing, and local\.key is left/)
    if (syncs) expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
    const again = await world.host(QUIET)
    expect(readFileSync(file, 'utf8')).toBe(key)
    expect(await open(again.url, key.trim())).toBe(code)
    const log = await again.said(/that in \S*local\.key is taken into it/)
    expect(log).toMatch(/mirror\.db is new.* another one was here.*patchmirror restore FILE/)
  },
)
