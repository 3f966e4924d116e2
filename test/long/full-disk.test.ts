import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs' // prettier-ignore
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { restoreBackup } from '../../src/backup/restore.ts'
import { type BackupOptions, writeBackup } from '../../src/backup/write.ts'
import { migrate } from '../../src/store/database/migrate.ts'
import { MIGRATIONS } from '../../src/store/database/migrations/mirror.ts'
import { databasePath, openWriter } from '../../src/store/database/open.ts'
import { FILLED_AT, openFilledStore } from '../support/filled-store.ts'

const mounts: string[] = []

/** A file system of its own; null when the test may not mount one. */
function mountSmall(size: string): string | null {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-full-'))
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', dir]).status !== 0) {
    rmSync(dir, { recursive: true })
    return null
  }
  mounts.push(dir)
  return dir
}

const MAY_MOUNT = mountSmall('1m') !== null

afterAll(() => {
  for (const dir of mounts) {
    spawnSync('umount', ['-l', dir])
    rmSync(dir, { recursive: true, force: true })
  }
})

function smallDisk(size: string): string {
  const dir = mountSmall(size)
  if (dir === null) throw new Error('no file system could be mounted')
  return dir
}

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-data-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Takes all but these bytes of a file system. */
function fill(dir: string, leave: number): void {
  const { bavail, bsize } = statfsSync(dir)
  writeFileSync(join(dir, 'ballast'), Buffer.alloc(Math.max(0, bavail * bsize - leave)))
}

/** A data folder with a little data. */
function filled(): string {
  const dir = folder()
  const store = openFilledStore(dir)
  store.publishOsv({ one: '{"id":"one"}' })
  store.close()
  return dir
}

function optionsOf(dataDir: string, path: string): BackupOptions {
  return {
    ...{ dataDir, path, force: false, isPrivate: false, program: 'patchmirror/test' },
    ...{ secretFile: join(dataDir, 'webhook-secrets.json'), now: () => FILLED_AT },
  }
}

const FULL = { code: 'storage', message: expect.stringMatching(/are needed in .* are free/) as string } // prettier-ignore

describe.skipIf(!MAY_MOUNT)('a full disk (needs the right to mount a tmpfs)', () => {
  test('refuses a backup, keeps the one that it was to replace, and a repeated one succeeds', async () => {
    const disk = smallDisk('24m')
    const options = { ...optionsOf(filled(), join(disk, 'b.zip')), force: true }
    await writeBackup(options)
    const before = readFileSync(options.path)
    fill(disk, 500_000)
    await expect(writeBackup(options)).rejects.toMatchObject(FULL)
    expect(readdirSync(disk).sort()).toEqual(['b.zip', 'ballast'])
    expect(readFileSync(options.path)).toEqual(before)
    rmSync(join(disk, 'ballast'))
    await writeBackup(options)
  })

  test('that fills up while a backup is written leaves nothing of it', async () => {
    const disk = smallDisk('24m')
    const options = optionsOf(filled(), join(disk, 'b.zip'))
    const now = (): number => {
      fill(disk, 0) // when the copies are made, before they are packed
      return FILLED_AT
    }
    await expect(writeBackup({ ...options, now })).rejects.toMatchObject({ code: 'storage' })
    expect(readdirSync(disk)).toEqual(['ballast'])
  })

  test('refuses a restore or stops it, leaves the folder empty, and a repeated one succeeds', async () => {
    const disk = smallDisk('24m')
    const path = join(folder(), 'b.zip')
    await writeBackup(optionsOf(filled(), path))
    const dataDir = join(disk, 'data')
    mkdirSync(dataDir)
    const restore = (onStep: (step: string) => void) =>
      restoreBackup({ path, dataDir, newIdentity: false, onStep })
    fill(disk, 500_000)
    await expect(restore(() => undefined)).rejects.toMatchObject(FULL)
    expect(readdirSync(dataDir)).toEqual([])
    rmSync(join(disk, 'ballast'))
    const late = restore((step) => {
      if (step === 'extract') fill(disk, 0)
    })
    await expect(late).rejects.toMatchObject({ code: 'storage', message: expect.stringContaining(dataDir) as string }) // prettier-ignore
    expect(readdirSync(dataDir)).toEqual([])
    rmSync(join(disk, 'ballast'))
    await restore(() => undefined)
    openWriter(dataDir).close()
  })

  test('refuses a migration whose copy has no room, and changes nothing', () => {
    const disk = smallDisk('8m')
    const db = new Database(databasePath(disk))
    db.pragma('journal_mode = WAL')
    db.function('random_bytes', (length) => Buffer.alloc(Number(length), 7))
    migrate(db, MIGRATIONS.slice(0, -1))
    db.close()
    fill(disk, 500_000)
    const open = (): void => void openWriter(disk, () => undefined).close()
    expect(open).toThrow(/is copied before it is migrated: .* Nothing was changed: free some space/)
    expect(readdirSync(join(disk, 'backups'))).toEqual([])
    const same = new Database(databasePath(disk))
    expect(same.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length - 1)
    same.close()
    rmSync(join(disk, 'ballast'))
    open()
    expect(readdirSync(join(disk, 'backups'))).toEqual([
      `mirror-schema-${MIGRATIONS.length - 1}.db`,
    ])
  })
})
