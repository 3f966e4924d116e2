import { chownSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { writeBackup } from '../../../src/features/backup/write.ts'
import { restoreBackup } from '../../../src/features/backup/restore.ts'
import { acquireLock } from '../../../src/store/database/lock.ts'
import { openInbox, openReader, openWriter } from '../../../src/store/database/open.ts'

const OTHER = 65_534

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

describe.skipIf(process.geteuid?.() !== 0)('root, at a data folder of another user (needs root)', () => {
  test('creates nothing in it, and the refusal has the command to run instead', async () => {
    const dir = folder()
    chownSync(dir, OTHER, OTHER)
    const file = join(folder(), 'backup.zip')
    const works: (() => unknown)[] = [
      () => openWriter(dir),
      () => openInbox(dir),
      () => acquireLock(dir, 'serve'),
      () =>
        restoreBackup({
          path: file,
          dataDir: dir,
          newIdentity: false,
          now: Date.now,
        }),
    ]
    for (const work of works)
      await expect(new Promise((resolve) => resolve(work()))).rejects.toMatchObject({
        code: 'storage',
        message: expect.stringContaining(`setpriv --reuid=${OTHER} --regid=${OTHER}`) as string,
      })
    expect(readdirSync(dir)).toEqual([])
  })

  test('still reads and backs up what is in it', async () => {
    const dir = folder()
    openWriter(dir).close()
    for (const name of ['', ...readdirSync(dir)]) chownSync(join(dir, name), OTHER, OTHER)
    openReader(dir)?.close()
    const path = join(folder(), 'backup.zip')
    const options = { dataDir: dir, path, force: false, isPrivate: false, program: 'test' }
    await writeBackup({ ...options, secretFile: join(dir, 'none'), now: Date.now })
    expect(readdirSync(path.replace(/backup\.zip$/, ''))).toEqual(['backup.zip'])
    const owners = readdirSync(dir).map((name) => statSync(join(dir, name)).uid)
    expect(new Set(owners)).toEqual(new Set([OTHER]))
  })
})
