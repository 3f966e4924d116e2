import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { draftIn } from '../../src/base/files.ts'
import { makeTemporary } from '../../src/store/temporary.ts'
import { bothTest, longTest, telling, test } from '../support/tables.ts'
import { scratch } from './fixtures.ts'

const MODULE = new URL('../../src/store/temporary.ts', import.meta.url).href

/** Starts a process that makes a temporary folder with a secret in it, and stays. */
async function holder(parent: string, more = '') {
  const code = `
    import { writeFileSync } from 'node:fs'
    const { makeTemporary } = await import(${JSON.stringify(MODULE)})
    const { folder } = makeTemporary(${JSON.stringify(parent)})
    writeFileSync(folder + '/local.key', 'secret')
    ${more}
    process.stdout.write('here')
    setInterval(() => undefined, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  return { child, ended }
}

test('a temporary folder is private, and gone after its removal', () => {
  const parent = scratch()
  const temporary = makeTemporary(parent)
  expect(statSync(temporary.folder).mode & 0o777).toBe(0o700)
  temporary.remove()
  temporary.remove()
  expect(readdirSync(parent)).toEqual([])
})

test('a pipe or a link under the name of a lock is neither opened nor removed', () => {
  const parent = scratch()
  const foreign = join(parent, 'foreign.db')
  const db = new Database(foreign)
  db.pragma('journal_mode = WAL')
  db.close()
  const before = readFileSync(foreign)
  for (const name of ['.pm-pipe01', '.pm-link01']) mkdirSync(join(parent, name))
  execFileSync('mkfifo', [join(parent, '.pm-pipe01', 'lock')])
  symlinkSync(foreign, join(parent, '.pm-link01', 'lock'))
  symlinkSync(join(parent, '.pm-pipe01'), join(parent, '.pm-link02'))
  makeTemporary(parent).remove()
  expect(readdirSync(parent).sort()).toEqual(['.pm-link01', '.pm-link02', '.pm-pipe01', 'foreign.db'])
  expect(readFileSync(foreign).equals(before)).toBe(true)
})

bothTest.each(telling(['SIGINT', 'SIGTERM', 'SIGHUP'] as const, 'SIGTERM'))(
  'a process that %s ends removes its temporary folder, and ends by that signal',
  async (signal) => {
    const parent = scratch()
    const { child, ended } = await holder(parent)
    expect(readdirSync(parent)).toHaveLength(1)
    child.kill(signal)
    expect(await ended).toEqual([null, signal])
    expect(readdirSync(parent)).toEqual([])
  },
)

longTest(
  'the folder of a killed process is removed by the next that makes one, that of a living one stays',
  async () => {
    const parent = scratch()
    const [killed, living] = await Promise.all([holder(parent), holder(parent)])
    killed.child.kill('SIGKILL')
    await killed.ended
    mkdirSync(join(parent, '.pm-others', 'a'), { recursive: true })
    mkdirSync(join(parent, '.pm-empty1')) // killed before its lock was there
    expect(readdirSync(parent)).toHaveLength(4)
    const own = makeTemporary(parent)
    expect(readdirSync(parent)).toHaveLength(3) // the living one, this one, and what is not ours
    own.remove()
    living.child.kill('SIGKILL')
    await living.ended
    makeTemporary(parent).remove()
    expect(readdirSync(parent)).toEqual(['.pm-others'])
  },
)

/** Collects what is removed from a folder, in this order. */
function watchRemovals(folder: string) {
  const removed: string[] = []
  const watcher = watch(folder, (_event, name) => {
    if (name !== null && !existsSync(join(folder, name))) removed.push(name)
  })
  onTestFinished(() => watcher.close())
  return removed
}

/** Fills a folder with files; the lock is neither the newest nor the oldest of them, and their hashes are before and after its own. */
function fill(folder: string): void {
  for (let n = 0; n < 20; n++) writeFileSync(join(folder, `older${n}`), 'x')
  renameSync(join(folder, 'lock'), join(folder, 'away'))
  renameSync(join(folder, 'away'), join(folder, 'lock'))
  for (let n = 0; n < 20; n++) writeFileSync(join(folder, `newer${n}`), 'x')
}

longTest(
  'the lock is removed last: a process that is killed meanwhile leaves what the next one may remove',
  async () => {
    const parent = scratch()
    const own = makeTemporary(parent)
    fill(own.folder)
    const removedByOwner = watchRemovals(own.folder)
    own.remove()
    const killed = await holder(parent)
    killed.child.kill('SIGKILL')
    await killed.ended
    const [left = ''] = readdirSync(parent)
    fill(join(parent, left))
    const removedBySweep = watchRemovals(join(parent, left))
    makeTemporary(parent).remove()
    await expect.poll(() => removedByOwner.filter((name) => name !== basename(own.folder))).toHaveLength(41)
    await expect.poll(() => removedBySweep.filter((name) => name !== left)).toHaveLength(42)
    expect(removedByOwner.indexOf('lock')).toBe(40)
    expect(removedBySweep.indexOf('lock')).toBe(41)
  },
)

longTest('a process that listens to a signal itself goes on', async () => {
  const parent = scratch()
  const { child, ended } = await holder(parent, "process.once('SIGTERM', () => process.exit(7))")
  child.kill('SIGTERM')
  expect(await ended).toEqual([7, null])
  expect(readdirSync(parent)).toEqual([]) // an exit cleans as well
})

test('a draft that a killed process left is removed by the next after an hour', () => {
  const parent = scratch()
  const old = draftIn(parent)
  const young = draftIn(parent)
  for (const path of [old, young]) writeFileSync(path, 'secret')
  const then = Date.now() / 1000 - 3_700
  utimesSync(old, then, then)
  draftIn(parent)
  expect(readdirSync(parent).map((name) => join(parent, name))).toEqual([young])
})
