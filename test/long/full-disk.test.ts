import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { restoreBackup } from '../../src/features/backup/restore.ts'
import { type BackupOptions, writeBackup } from '../../src/features/backup/write.ts'
import { addStep } from '../store/fixtures.ts'
import { MIRROR_SCHEMA } from '../../src/store/database/schema/mirror.ts'
import { newestOf } from '../../src/store/database/schema/schema.ts'
import { databasePath, openWriter } from '../../src/store/database/open.ts'
import { FILLED_AT, openFilledStore } from '../support/filled-store.ts'
import { BALLAST, emptyDisk, fillDisk, mayMount, smallDisks } from '../support/small-disk.ts'

const MAY_MOUNT = mayMount()
const smallDisk = smallDisks()

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-data-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
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
    dataDir,
    path,
    force: false,
    isPrivate: false,
    program: 'patchmirror/test',
    secretFile: join(dataDir, 'webhook-secrets.json'),
    now: () => FILLED_AT,
  }
}

const FULL = { code: 'storage', message: expect.stringMatching(/are needed in .* are free/) as string }

describe.skipIf(!MAY_MOUNT)('a full disk (needs the right to mount a tmpfs)', () => {
  test('refuses a backup, keeps the one that it was to replace, and a repeated one succeeds', async () => {
    const disk = smallDisk('24m')
    const options = { ...optionsOf(filled(), join(disk, 'b.zip')), force: true }
    await writeBackup(options)
    const before = readFileSync(options.path)
    fillDisk(disk, 500_000)
    await expect(writeBackup(options)).rejects.toMatchObject(FULL)
    expect(readdirSync(disk).sort()).toEqual([BALLAST, 'b.zip'].sort())
    expect(readFileSync(options.path)).toEqual(before)
    emptyDisk(disk)
    await writeBackup(options)
  })

  test('that fills up while a backup is written leaves nothing of it', async () => {
    const disk = smallDisk('24m')
    const options = optionsOf(filled(), join(disk, 'b.zip'))
    const now = (): number => {
      fillDisk(disk) // when the copies are made, before they are packed
      return FILLED_AT
    }
    await expect(writeBackup({ ...options, now })).rejects.toMatchObject({ code: 'storage' })
    expect(readdirSync(disk)).toEqual([BALLAST])
  })

  test('refuses a restore or stops it, leaves the folder empty, and a repeated one succeeds', async () => {
    const disk = smallDisk('24m')
    const path = join(folder(), 'b.zip')
    await writeBackup(optionsOf(filled(), path))
    const dataDir = join(disk, 'data')
    mkdirSync(dataDir)
    const restore = (onStep: (step: string) => void) =>
      restoreBackup({ path, dataDir, newIdentity: false, now: Date.now, onStep })
    fillDisk(disk, 500_000)
    await expect(restore(() => undefined)).rejects.toMatchObject(FULL)
    expect(readdirSync(dataDir)).toEqual([])
    emptyDisk(disk)
    const late = restore((step) => {
      if (step === 'extract') fillDisk(disk)
    })
    await expect(late).rejects.toMatchObject({ code: 'storage', message: expect.stringContaining(dataDir) as string })
    expect(readdirSync(dataDir)).toEqual([])
    emptyDisk(disk)
    await restore(() => undefined)
    openWriter(dataDir).close()
  })

  test('refuses a migration whose copy has no room, and changes nothing', () => {
    const disk = smallDisk('8m')
    openWriter(disk).close()
    const before = newestOf(MIRROR_SCHEMA)
    addStep()
    fillDisk(disk, 500_000)
    const open = (): void => void openWriter(disk, () => undefined).close()
    expect(open).toThrow(/is copied before it is migrated: .* Nothing was changed: free some space/)
    expect(readdirSync(join(disk, 'backups'))).toEqual([])
    const same = new Database(databasePath(disk))
    expect(same.pragma('user_version', { simple: true })).toBe(before)
    same.close()
    emptyDisk(disk)
    open()
    expect(readdirSync(join(disk, 'backups'))).toEqual([`mirror-schema-${before}.db`])
  })
})
