import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { World } from '../../support/daemons.ts'
import { commandHost } from '../../support/hosted.ts'
import { SECRET, open, send, synced } from '../../e2e/receiving.ts'
import { LONG } from '../../support/tables.ts'

const run = commandHost()

/** Files and folders below a folder, itself included. */
function pathsBelow(path: string): string[] {
  if (!lstatSync(path).isDirectory()) return [path]
  return [path, ...readdirSync(path).flatMap((name) => pathsBelow(join(path, name)))]
}

/** What group or others may do something with. */
const loose = (dir: string): string[] => pathsBelow(dir).filter((path) => (lstatSync(path).mode & 0o077) !== 0)

/** Checks the files of a target mirror and of an export for scanners, each made by a worker thread. */
async function expectPrivateBelow(world: World, env: Record<string, string>): Promise<void> {
  const file = (name: string): string => join(world.dir, name)
  const below = { ...env, PATCHMIRROR_DATA_DIR: file('below') }
  expect((await run(['bundle', 'import', file('all.zip')], below, world.dir)).code).toBe(0)
  expect((await run(['bundle', 'need', file('need')], below, world.dir)).code).toBe(0)
  expect((await run(['export-db', 'osv-scanner', file('db')], env, world.dir)).code).toBe(0)
  for (const name of ['below', 'need', 'db']) expect(loose(file(name))).toEqual([])
}

test('every file that the program creates is private to its user, and looser modes are tightened', async () => {
  const world = await open({}, run)
  const { data } = world
  const daemon = await world.serve({ PATCHMIRROR_WEBHOOKS_SECRETS: SECRET })
  await synced(daemon)
  const [tag = ''] = world.sandbox.service.ids('tags')

  expect(await send(world, `${daemon.url}/-/webhooks`, tag)).toBe(202)
  const made = (name: RegExp) => pathsBelow(data).some((path) => name.test(path))
  await fetch(`${daemon.url}/osv/ecosystems.txt`) // a request that waits for views has them made at once
  await expect.poll(() => made(/views.osv-.*\.zip$/) && made(/views.vex-/)).toBe(true)
  expect(loose(data)).toEqual([])

  const file = (name: string): string => join(world.dir, name)
  expect((await world.patchmirror('bundle', 'keygen', file('key'))).code).toBe(0)
  const env = {
    ...world.env,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: file('key'),
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: file('key.pub'),
  }
  expect((await run(['bundle', 'export', file('all.zip')], env, world.dir)).code).toBe(0)
  for (const name of ['all.zip', 'key']) expect(loose(file(name))).toEqual([])
  if (LONG) await expectPrivateBelow(world, env)

  daemon.child.kill('SIGTERM')
  await daemon.finished
  for (const path of pathsBelow(data)) chmodSync(path, lstatSync(path).isDirectory() ? 0o755 : 0o644)
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  expect(loose(data)).toEqual([data]) // the folder itself may be shared on purpose; nothing in it is
})
