import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { createInboxImporter } from '../../../../src/features/bundles/boxes/inbox.ts'
import type { ImportReport } from '../../../../src/features/bundles/import/types.ts'
import { openBundle } from '../../../../src/features/bundles/import/open.ts'
import { frameOf, magic } from '../../../../src/features/bundles/thin/format.ts'
import { digestOfFile } from '../../../../src/features/bundles/export/output-file.ts'
import { type Tries, createTries } from '../../../../src/features/bundles/boxes/crash-counter.ts'
import { LATER, keyPair, scratch, trust, writeBundle } from '../fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

const dir = scratch()
const key = keyPair(dir, 'inbox')
const other = keyPair(dir, 'stranger')
const whom = trust([key])

/** An inbox that only opens; `open` has how many files were open at each import. */
function inboxOf(folder: string, tries?: Tries) {
  const imported: string[] = []
  const open: number[] = []
  const inbox = createInboxImporter({
    folder,
    dataDir: folder,
    trust: { keys: [key], revoked: new Set(), now: () => LATER },
    now: () => LATER,
    apply(bundle, file) {
      imported.push(file)
      open.push(readdirSync('/proc/self/fd').length)
      const { sequence } = bundle.manifest
      return Promise.resolve({ outcome: 'applied', sequence } as ImportReport)
    },
    onSettled: () => undefined,
    ...(tries === undefined ? {} : { tries }),
  })
  const look = async (): Promise<void> => {
    for (let i = 0; i < 2; i++) await inbox.look() // the first finds everything still arriving
  }
  return { look, status: () => inbox.status(), imported, open }
}

async function box(name: string, bundles: readonly string[], by = key): Promise<string> {
  const folder = join(dir, name)
  mkdirSync(folder)
  for (const one of bundles) await writeBundle(join(folder, one), [by])
  return folder
}

describe('an inbox', () => {
  test('imports regular files only: pipes, loops and links stay', async () => {
    const folder = await box('odd', ['good.zip', 'whole.zip'])
    execFileSync(
      'mkfifo',
      ['a.zip', 'a.zip.001', 'good.zip.sha256'].map((one) => join(folder, one)),
    )
    symlinkSync('loop.zip', join(folder, 'loop.zip'))
    symlinkSync('whole.zip', join(folder, 'link.zip'))
    const { look, imported, status } = inboxOf(folder)
    await look()
    expect(imported).toEqual(['good.zip', 'whole.zip'])
    expect(status()).toMatchObject({ problem: null, refused: 0, waiting: [] })
    const pipe = join(folder, 'a.zip')
    await expect(openBundle([pipe], whom)).rejects.toThrow(/is not a regular file/)
    await expect(openBundle([`${pipe}.001`], whom)).rejects.toThrow('is not a regular file')
  })

  test('refuses a damaged thin bundle with the reason', async () => {
    const folder = await box('thin', [])
    writeFileSync(join(folder, 'day.zip'), Buffer.concat([magic(), frameOf(Buffer.from('a part'))]))
    const { look, status } = inboxOf(folder)
    await look()
    expect(status().lastRefused?.why).toMatch(
      /^the thin bundle \[inbox\]\/day\.zip is refused: a part of it does not expand/,
    )
    expect(readdirSync(join(folder, 'refused'))).toContain('day.zip')
  })

  test('waits while a file cannot be read, and imports the others', async () => {
    const folder = await box('unreadable', ['a.zip', 'b.zip'])
    chmodSync(join(folder, 'a.zip'), 0)
    const { look, imported, status } = inboxOf(folder)
    await look()
    const isRoot = process.getuid?.() === 0 // who may read everything
    expect(imported).toEqual(isRoot ? ['a.zip', 'b.zip'] : ['b.zip'])
    expect(status().refused).toBe(0)
  })

  test('imports a whole bundle with its list of digests, and moves both', async () => {
    const folder = await box('listed', ['x.zip'])
    const list = `${await digestOfFile(join(folder, 'x.zip'))}  x.zip\n`
    writeFileSync(join(folder, 'x.zip.sha256'), list)
    writeFileSync(join(folder, 'y.zip.sha256'), list.replace('x', 'y'))
    const { look, imported, status } = inboxOf(folder)
    await look()
    expect(imported).toEqual(['x.zip'])
    expect(readdirSync(join(folder, 'done')).sort()).toEqual(['x.zip', 'x.zip.sha256'])
    expect(status()).toMatchObject({ refused: 0, waiting: [{ file: 'y.zip' }] })
  })

  test('never writes through a link, and overwrites no file', async () => {
    const folder = await box('links', ['bad.zip'], other)
    const victim = join(dir, 'victim')
    const elsewhere = join(dir, 'elsewhere')
    writeFileSync(victim, 'precious')
    mkdirSync(join(folder, 'refused'))
    symlinkSync(victim, join(folder, 'refused', 'bad.zip.txt'))
    writeFileSync(join(folder, 'refused', 'bad.zip'), 'earlier')
    const first = inboxOf(folder)
    await first.look()
    expect(readFileSync(victim, 'utf8')).toBe('precious')
    expect(readFileSync(join(folder, 'refused', 'bad.zip'), 'utf8')).toBe('earlier')
    expect(readFileSync(join(folder, 'refused', '2-bad.zip.txt'), 'utf8')).toMatch(/it is signed by/)
    expect(existsSync(join(folder, 'refused', '2-bad.zip'))).toBe(true)
    mkdirSync(elsewhere)
    symlinkSync(elsewhere, join(folder, 'done'))
    await writeBundle(join(folder, 'fine.zip'), [key])
    const second = inboxOf(folder)
    await second.look()
    expect(second.imported).toEqual(['fine.zip'])
    expect(readdirSync(elsewhere)).toEqual([])
  })

  longTest('has one bundle open at a time', async () => {
    const folder = await box('many', ['0.zip'])
    for (let n = 1; n < 40; n++) copyFileSync(join(folder, '0.zip'), join(folder, `${n}.zip`))
    const { look, imported, open } = inboxOf(folder)
    await look()
    expect(imported).toHaveLength(40)
    expect(Math.max(...open) - Math.min(...open)).toBeLessThan(8)
  })

  longTest('refuses a bundle that killed the process twice in its import, and imports the next one', async () => {
    const folder = await box('deadly', ['a.zip', 'b.zip'])
    const dataDir = join(dir, 'deadly-data')
    mkdirSync(dataDir)
    for (let n = 0; n < 2; n++) expect(importKilled(folder, dataDir)).toBe('SIGKILL')
    const { look, imported, status } = inboxOf(folder, createTries(dataDir))
    await look()
    expect(imported).toEqual(['b.zip'])
    expect(status()).toMatchObject({ refused: 1, lastRefused: { file: 'refused/a.zip' } })
    const note = readFileSync(join(folder, 'refused', 'a.zip.txt'), 'utf8')
    expect(note).toContain('the process ended twice')
    await writeBundle(join(folder, 'a.zip'), [key])
    const again = inboxOf(folder, createTries(dataDir))
    await again.look()
    expect(again.imported).toEqual(['a.zip'])
  })
})

const sourceOf = (file: string): string =>
  JSON.stringify(new URL(`../../../../src/features/bundles/${file}`, import.meta.url).href)

/** Imports in a process that kills itself in the first import; returns the signal that ended it. */
function importKilled(folder: string, dataDir: string): NodeJS.Signals | null {
  const code = `
    const { createInboxImporter } = await import(${sourceOf('boxes/inbox.ts')})
    const { createTries } = await import(${sourceOf('boxes/crash-counter.ts')})
    const { readSigningKey } = await import(${sourceOf('format/keys.ts')})
    const { folder, dataDir, path, at } = ${JSON.stringify({ folder, dataDir, path: key.path, at: LATER })}
    const now = () => at
    const inbox = createInboxImporter({
      folder,
      dataDir,
      trust: { keys: [readSigningKey(path)], revoked: new Set(), now },
      now,
      apply: () => process.kill(process.pid, 'SIGKILL'),
      tries: createTries(dataDir),
      onSettled: () => undefined,
    })
    await inbox.look()
    await inbox.look()`
  const { signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  expect(stderr).toBe('')
  return signal
}
