import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished } from 'vitest'
import { MirrorError } from '../../src/base/errors.ts'
import { openWriter } from '../../src/store/database/open.ts'
import { openPinnedReads } from '../../src/store/reads.ts'
import { openWrites } from '../../src/store/writes.ts'
import { type Bench, differences } from '../support/mirror.ts'
import { emptyDisk, fillDisk, mayMount, smallDisks } from '../support/small-disk.ts'
import { bothTest, longTest, telling, test } from '../support/tables.ts'
import { bench, contentsOf, disagreements, expectAgreement, expectSound, synced, tamper } from './fixtures.ts'
import { runChild } from './killing.ts'

const MAY_MOUNT = mayMount()
const smallDisk = smallDisks()
const MAY_SWITCH_USER = process.getuid?.() === 0

async function onSmallDisk(size: string, records: number): Promise<Bench> {
  return bench({ dir: smallDisk(size), sandbox: { records, large: 0 } })
}

async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    return error instanceof MirrorError ? error.code : `not named: ${String(error)}`
  }
  return 'nothing was thrown'
}

describe.skipIf(!MAY_MOUNT)('a full disk (needs the right to mount a tmpfs)', () => {
  longTest('is detected before a download begins', async () => {
    const made = await onSmallDisk('2m', 800)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'failed', code: 'storage' })
    expect(report.message).toContain('bytes free')
    expect(readdirSync(join(made.dir, 'downloads'))).toEqual([])
  })

  longTest.each([0, 40_000, 150_000, 400_000, 800_000])(
    'with %i bytes left fails the run and leaves the old snapshot readable',
    async (left) => {
      const made = await onSmallDisk('12m', 600)
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      const before = contentsOf(made.dir)
      const snapshot = made.store.snapshots.readSnapshot('osv')
      made.sandbox.feed.change(200)
      made.sandbox.feed.add(20)
      fillDisk(made.dir, left)
      const failed = await made.run('osv').catch((error: unknown) => error)
      expect(failed).toMatchObject({ code: 'storage' })
      expect(contentsOf(made.dir)).toEqual(before)
      const reads = openPinnedReads(made.dir)
      onTestFinished(() => reads?.close())
      expect(reads?.pinned.snapshots.readSnapshot('osv')).toEqual(snapshot)
      if (reads !== null) expect(disagreements(reads.pinned, made.dir)).toEqual([])
      emptyDisk(made.dir)
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      expect(differences(made)).toEqual([])
      expectAgreement(made)
      await expectSound(made.dir)
      expect(made.store.runs.listRuns(9).filter(({ state }) => state === 'running')).toEqual([])
      expect(readdirSync(join(made.dir, 'derived')).length).toBeLessThanOrEqual(2)
    },
  )

  longTest('that fills up several times keeps no unusable files', async () => {
    const made = await onSmallDisk('12m', 600)
    await made.run('osv')
    fillDisk(made.dir, 900_000)
    made.sandbox.feed.change(240)
    for (let i = 0; i < 4; i++) {
      made.sandbox.feed.change(2)
      await made.run('osv').catch(() => undefined)
    }
    expect(readdirSync(join(made.dir, 'derived')).length).toBeLessThanOrEqual(2)
    emptyDisk(made.dir)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('that has no room for the first row is reported', async () => {
    const dir = smallDisk('1m')
    fillDisk(dir)
    expect(await codeOf(() => openWrites(dir))).toBe('storage')
  })

  longTest('that is mounted read-only is reported', async () => {
    const dir = smallDisk('8m')
    const { sandbox } = await bench({ sandbox: { records: 50, large: 0 } })
    expect(await runChild(sandbox, dir)).toContain('ended complete ')
    expect(spawnSync('mount', ['-o', 'remount,ro', dir]).status).toBe(0)
    const lines = await runChild(sandbox, dir)
    expect(lines.at(-1)).toMatch(/^refused storage the data folder .* may write/)
  })
})

describe.skipIf(!MAY_SWITCH_USER)('a data folder of another user (needs root)', () => {
  const OTHER = 65_534

  const CLOSED: [string, number, RegExp][] = [
    ['that may not be entered', 0o700, /^refused storage the data folder /],
    ['that may not be written', 0o755, /^refused storage \S+mirror\.db belongs to user 0: /],
  ]
  const rows = telling(CLOSED, 'that may not be written')
  bothTest.each(rows)('%s is refused with the reason', async (_name, mode, reason) => {
    const made = await synced({ sandbox: { records: 20, large: 0 } })
    chmodSync(made.dir, mode)
    const lines = await runChild(made.sandbox, made.dir, { uid: OTHER })
    expect(lines.at(-1)).toMatch(reason)
  })

  longTest('whose downloads folder may not be written fails the run', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    chownSync(dir, OTHER, OTHER)
    mkdirSync(join(dir, 'downloads'))
    const made = await bench({ sandbox: { records: 20, large: 0 } })
    const lines = await runChild(made.sandbox, dir, { uid: OTHER })
    expect(lines.at(-2)).toBe('ended failed storage')
  })

  longTest('is named with the one folder in it that a command of another user made', async () => {
    const { dir } = await synced({ sandbox: { records: 20, large: 0 } })
    const views = join(dir, 'derived', 'views')
    mkdirSync(views)
    expect(spawnSync('chown', ['-R', String(OTHER), dir]).status).toBe(0)
    chownSync(views, 0, 0)
    chmodSync(views, 0o700)
    const env = { PATH: process.env['PATH'], PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_UPSTREAM_API_ROOT: '' }
    for (const command of [['doctor'], ['doctor', '--data', '--repair']]) {
      const { stdout, stderr } = spawnSync(process.execPath, ['src/main.ts', ...command], {
        uid: OTHER,
        env,
        encoding: 'utf8',
      })
      expect(stdout + stderr).toContain(`${views} belongs to user 0: run the command as the user of the daemon`)
      expect(stdout + stderr).not.toContain('    at ')
    }
  })
})

describe('a data folder that cannot be used', () => {
  function folder(): string {
    const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    return dir
  }

  test('is refused when it is a file', async () => {
    const path = join(folder(), 'file')
    writeFileSync(path, '')
    expect(await codeOf(() => openWrites(path))).toBe('storage')
  })

  test.each([
    ['no database at all', (path: string) => writeFileSync(path, 'not a database, '.repeat(500))],
    ['cut short', (path: string) => spawnSync('truncate', ['-s', '5000', path])],
  ])('is refused when its database is %s', async (_name, spoil) => {
    const dir = folder()
    const db = openWriter(dir)
    db.exec('INSERT INTO osv_body (bytes) SELECT zeroblob(9000) FROM (VALUES (1), (2), (3))')
    db.pragma('wal_checkpoint(TRUNCATE)')
    db.close()
    spoil(join(dir, 'mirror.db'))
    expect(await codeOf(() => openWrites(dir))).toBe('corrupt')
  })

  test('is refused when a newer program wrote it', async () => {
    const dir = folder()
    openWriter(dir).close()
    const db = new Database(join(dir, 'mirror.db'))
    db.pragma('user_version = 99')
    db.close()
    expect(await codeOf(() => openWrites(dir))).toBe('schema')
    expect(await codeOf(() => openPinnedReads(dir))).toBe('schema')
  })

  test('refuses a run while another process has the lock, and that process keeps it', async () => {
    const made = await synced({ sandbox: { records: 20, large: 0 } })
    const holder = new Database(join(made.dir, 'sync.lock'))
    holder.exec('BEGIN EXCLUSIVE')
    expect(await codeOf(() => made.run('osv'))).toBe('locked')
    expect(await codeOf(() => made.run('feeds'))).toBe('locked')
    holder.close()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
  })

  longTest('whose database is damaged ends the run as corrupt', async () => {
    const made = await synced()
    made.sandbox.feed.change(3)
    tamper(made.dir, 'DELETE FROM upstream_state')
    made.store.checkpoint()
    made.store.close()
    const db = new Database(join(made.dir, 'mirror.db'))
    const page = db.prepare<[], number>("SELECT rootpage FROM sqlite_schema WHERE name = 'osv_record'").pluck().get()
    const size = Number(db.pragma('page_size', { simple: true }))
    db.close()
    const at = ((page ?? 1) - 1) * size
    spawnSync('dd', [
      'if=/dev/urandom',
      `of=${join(made.dir, 'mirror.db')}`,
      'bs=1',
      `seek=${at}`,
      'count=4096',
      'conv=notrunc',
    ])
    const lines = await runChild(made.sandbox, made.dir)
    expect(lines.slice(-2).join(' ')).toMatch(/ended failed corrupt|refused corrupt/)
  })
})
