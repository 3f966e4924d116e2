import { cpSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { restoreBackup } from '../../src/features/backup/restore.ts'
import { writeBackup } from '../../src/features/backup/write.ts'
import { openInbox } from '../../src/store/database/open.ts'
import { copyBeforeMigration } from '../../src/store/database/migration-copy.ts'
import { type World, openWorld } from '../support/daemons.ts'
import { commandHost } from '../support/hosted.ts'
import { bothTest, telling } from '../support/tables.ts'

const command = commandHost()
const NAMES = ['mirror.db', 'webhooks.db']

/** Packs a folder and restores it into another. */
async function restored(from: string, to: string, newIdentity = false, isPrivate = false) {
  const path = join(to, '..', 'backup.zip')
  const secretFile = join(from, 'webhook-secrets.json')
  const fixed = { force: true, program: 'patchmirror/test', now: Date.now }
  await writeBackup({ ...fixed, dataDir: from, path, isPrivate, secretFile })
  await restoreBackup({ path, dataDir: to, newIdentity, now: Date.now })
}

/** Copies each database of a folder in some way. */
function eachCopied(copy: (from: string, to: string) => unknown) {
  return async (from: string, to: string): Promise<void> => {
    mkdirSync(to)
    for (const name of NAMES) await copy(join(from, name), join(to, name))
  }
}

/** Runs one statement on a database that is closed after it. */
function execute(path: string, sql: string): void {
  const db = new Database(path)
  db.exec(sql)
  db.close()
}

/** The copy that a migration makes, put back as docs/guides/upgrade.md says. */
function putBack(from: string, to: string): void {
  const settle = (copy: string): void => execute(copy, 'PRAGMA journal_mode = DELETE')
  copyBeforeMigration(from, 1, settle, () => undefined)
  const [copy = ''] = readdirSync(join(from, '..', 'backups'))
  renameSync(join(from, '..', 'backups', copy), to)
}

async function online(from: string, to: string): Promise<void> {
  const db = new Database(from, { readonly: true })
  await db.backup(to)
  db.close()
}

/** Ways back from a bad day: each makes a data folder of another one. */
const WAYS: readonly [name: string, make: (from: string, to: string) => Promise<void> | void][] = [
  ['restore', (from, to) => restored(from, to)],
  ['restore --new-identity', (from, to) => restored(from, to, true)],
  ['restore --private, and a sync', (from, to) => restored(from, to, false, true)],
  ['the copy from before a migration', eachCopied(putBack)],
  ['VACUUM INTO', eachCopied((from, to) => execute(from, `VACUUM INTO '${to}'`))],
  ['.backup', eachCopied(online)],
  ['cp', (from, to) => cpSync(from, to, { recursive: true })],
  [
    'journal_mode = DELETE by hand',
    (from, to) => {
      cpSync(from, to, { recursive: true })
      for (const name of NAMES) execute(join(to, name), 'PRAGMA journal_mode = DELETE')
    },
  ],
]

/** A world whose data folder was filled, and its digest; without a webhooks.db none of the ways would have one. */
async function filled(): Promise<{ world: World; from: string; digest: string }> {
  const world = await openWorld({ records: 20, service: false }, undefined, command)
  onTestFinished(() => world.close())
  const from = join(world.dir, 'from')
  const at = { ...world.env, PATCHMIRROR_DATA_DIR: from }
  expect(await command(['sync'], at, world.dir)).toMatchObject({ code: 0 })
  openInbox(from).close()
  return { world, from, digest: await digestOf(world, from) }
}

async function digestOf(world: World, dir: string): Promise<string> {
  const at = { ...world.env, PATCHMIRROR_DATA_DIR: dir }
  const { out } = await command(['status', '--digest', '--json'], at, world.dir)
  return (JSON.parse(out) as { digest: string }).digest
}

bothTest.each(telling(WAYS, 'restore'))('a daemon serves a folder that comes from: %s', async (name, make) => {
  const { world, from, digest } = await filled()
  await make(from, world.data)
  const syncs = name.includes('sync') // then the dates of its data are other ones
  if (syncs) expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
  const whole = syncs ? await digestOf(world, world.data) : digest
  const daemon = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  const ready = await fetch(`${daemon.url}/-/ready`)
  expect([ready.status, await ready.json()]).toMatchObject([200, { ready: true }])
  expect(await digestOf(world, world.data)).toBe(whole)
  await daemon.close()
  const again = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  expect((await fetch(`${again.url}/-/ready`)).status).toBe(200)
})
