import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type World, openWorld } from '../../support/daemons.ts'
import { emptyDisk, fillDisk, mountDisk, unmountDisk } from '../../support/small-disk.ts'

const mounted = mountDisk('48m')
const disk = mounted ?? ''
let world: World

beforeAll(async () => {
  world = await openWorld({ records: 60 })
  const { code, err } = await world.patchmirror('sync')
  expect(code, err).toBe(0)
})

afterAll(async () => {
  await world.close()
  if (mounted !== null) unmountDisk(mounted)
})

/** A copy of the data folder on the small disk, which is full afterwards to the last byte. */
function fill(name: string): Record<string, string> {
  emptyDisk(disk)
  const data = join(disk, name)
  cpSync(world.data, data, { recursive: true })
  fillDisk(disk)
  return { PATCHMIRROR_DATA_DIR: data }
}

async function readsOf(url: string): Promise<unknown[]> {
  const records = await fetch(`${url}/external/osv/all.zip`)
  const ready = await fetch(`${url}/-/ready`)
  const { storage } = (await ready.json()) as { storage: unknown }
  return [records.status, (await records.arrayBuffer()).byteLength > 0, ready.status, storage]
}

const FULL = { ready: false, state: 'full', freeBytes: 0 }

async function end(daemon: Awaited<ReturnType<World['serve']>>): Promise<void> {
  daemon.child.kill()
  expect((await daemon.finished).code).toBe(0)
}

describe.skipIf(mounted === null)('on a full disk (needs the right to mount a tmpfs)', () => {
  const FOLDERS: [string, () => Promise<unknown>][] = [
    ['that was only synced', () => Promise.resolve()],
    ['that was served', async () => end(await world.serve())],
    ['whose last writer was a command', () => world.patchmirror('keys', 'create')],
  ]
  test.each(FOLDERS)('a daemon starts with a folder %s, serves it and says so', async (name, prepare) => {
    await prepare()
    const env = fill(name)
    const daemon = await world.serve(env)
    expect(daemon.text).toMatch(/"storage":"full".*What is stored is served; syncs/)
    expect(await readsOf(daemon.url)).toEqual([200, true, 503, expect.objectContaining(FULL)])
    await end(daemon)
    const again = await world.serve(env) // what the first one removed has no room any more
    expect((await readsOf(again.url)).slice(0, 2)).toEqual([200, true])
    await end(again)
    rmSync(join(disk, name), { recursive: true })
  })

  test('the folder is locked while a daemon serves it, is free when that was killed, and is written to when there is room', async () => {
    const env = fill('locked')
    const first = await world.serve(env)
    await expect(world.serve(env)).rejects.toThrow(/another Patchmirror already serves/)
    first.child.kill('SIGKILL')
    await first.finished
    const second = await world.serve(env)
    emptyDisk(disk)
    const changed = world.sandbox.feed.change(3)
    expect((await fetch(`${second.url}/-/ready`)).status).toBe(200)
    world.env = { ...world.env, ...env }
    const { code, err } = await world.patchmirror('sync', 'osv')
    expect(code, err).toBe(0)
    // A run of the daemon may have stored the changes before that of the command.
    for (const id of changed) {
      const { out } = await world.patchmirror('show', id, '--json')
      expect(JSON.parse(out), out).toHaveProperty('record.modified', world.sandbox.feed.modified(id))
    }
    await end(second)
  })
})
