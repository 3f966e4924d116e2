import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { restoreBackup } from '../../src/features/backup/restore.ts'
import { writeBackup } from '../../src/features/backup/write.ts'
import { openInbox, openReader } from '../../src/store/database/open.ts'
import { createCarriedReader } from '../../src/store/replication/reader.ts'
import { openFilledStore } from '../support/filled-store.ts'

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-restore-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function digestOf(dataDir: string): string | null {
  const db = openReader(dataDir)
  if (db === null) return null
  try {
    return createCarriedReader(db).digestSources().digest
  } finally {
    db.close()
  }
}

const RESTORE = new URL('../../src/features/backup/restore.ts', import.meta.url).href

/** Restores in a process that kills itself before a step; returns the steps that it reached. */
function restoreKilled(path: string, dataDir: string, at: number, newIdentity: boolean): number {
  const code = `
    import { writeSync } from 'node:fs'
    const { restoreBackup } = await import(${JSON.stringify(RESTORE)})
    let steps = 0
    const onStep = () => {
      if (steps === ${at}) process.kill(process.pid, 'SIGKILL')
      writeSync(1, String(steps++) + ' ')
    }
    await restoreBackup({ ...${JSON.stringify({ path, dataDir, newIdentity })}, now: Date.now, onStep })`
  const { stdout, signal, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code])
  expect(signal === 'SIGKILL' || status === 0).toBe(true)
  return stdout.toString().trim().split(' ').filter(Boolean).length
}

test.each([false, true])(
  'a restore killed at any step leaves a refused or whole mirror, and can be repeated (new identity: %s)',
  async (newIdentity) => {
    const made = folder()
    const store = openFilledStore(made)
    store.publishOsv(Object.fromEntries(['one', 'two'].map((id) => [id, `{"id":"${id}"}`])))
    store.close()
    openInbox(made).close()
    const whole = digestOf(made)
    const path = join(folder(), 'backup.zip')
    const secretFile = join(made, 'webhook-secrets.json')
    const options = { dataDir: made, path, force: false, isPrivate: false, program: 'test' }
    await writeBackup({ ...options, secretFile, now: Date.now })
    let at = 0
    for (; at < 20; at++) {
      const dataDir = join(folder(), 'data')
      expect(restoreKilled(path, dataDir, at, newIdentity)).toBe(at)
      const isWhole = !readdirSync(dataDir).includes('.restoring')
      if (isWhole) {
        expect(digestOf(dataDir)).toBe(whole)
        break
      }
      expect(() => openReader(dataDir)).toThrow('was not completely restored')
      await restoreBackup({ path, dataDir, newIdentity, now: Date.now })
      expect(digestOf(dataDir)).toBe(whole)
    }
    expect(at).toBeGreaterThan(4) // extract, check, publish, each file, finish
    expect(at).toBeLessThan(20)
  },
)
