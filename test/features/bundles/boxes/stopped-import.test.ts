import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { createTries } from '../../../../src/features/bundles/boxes/crash-counter.ts'
import type { ImportResult } from '../../../../src/features/bundles/boxes/inbox.ts'
import { startBoxesThread } from '../../../../src/features/bundles/boxes/thread.ts'
import { createKeyFiles, readSigningKey } from '../../../../src/features/bundles/format/keys.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { loadQuick } from '../../../support/limits.ts'
import { createBench } from '../../../support/mirror.ts'
import { oddNotes } from '../../../support/odd-notes.ts'
import { longTest, test } from '../../../support/tables.ts'
import { carry, folder } from '../air-gap.ts'

/** A data folder, and an inbox with one good bundle. */
async function openCase() {
  const bench = await createBench({ sandbox: { records: 5, service: false } })
  await bench.run('osv')
  const data = folder()
  const inbox = folder()
  const key = join(folder(), 'key.pem')
  createKeyFiles(key)
  await carry(bench.dir, inbox, { keys: [readSigningKey(key)] })
  await bench.close()
  const env = {
    PATCHMIRROR_DATA_DIR: data,
    PATCHMIRROR_BUNDLE_INBOX: inbox,
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: `${key}.pub`,
    LIMIT_BUNDLE_POLL_SECONDS: '1',
  }
  const { config } = loadQuick({ cwd: data, env })
  const settled: ImportResult[] = []
  const faults: string[] = []
  const start = () =>
    startBoxesThread({
      config,
      version: 'test',
      offline: false,
      onSettled: (one) => settled.push(one),
      onShipped: () => undefined,
      onFault: (message) => faults.push(message),
    })
  return { data, inbox, start, settled, faults }
}

/** The counts of attempts as they are noted; null: none are. */
function noted(data: string): object | null {
  try {
    return JSON.parse(readFileSync(join(data, 'inbox-tries.json'), 'utf8')) as object
  } catch {
    return null
  }
}

function isImporting(data: string): boolean {
  const bundles = Object.keys(noted(data) ?? {})
  return bundles.some((one) => !one.startsWith('head '))
}

describe('a stop of the daemon', () => {
  test('is not counted against the bundle of the attempt, however often it is taken back', () => {
    const data = folder()
    for (let n = 0; n < 3; n++) {
      let attempt = null as Parameters<Parameters<typeof createTries>[1] & object>[0]
      expect(createTries(data, (one) => (attempt = one)).begin('a.zip 1')).toBe(true)
      expect(attempt).toEqual({ bundle: 'a.zip 1', before: 0 })
      for (let i = 0; i < 2; i++) if (attempt !== null) createTries(data).takeBack(attempt)
      expect(noted(data)).toBeNull()
    }
  })

  longTest('twice in an import that does not end does not refuse the bundle', async () => {
    const { data, start, settled } = await openCase()
    const other = openWriter(data)
    onTestFinished(() => void other.close())
    for (let n = 0; n < 2; n++) {
      other.exec('BEGIN IMMEDIATE') // the import waits for it, and its thread with it
      const thread = start()
      await expect.poll(() => isImporting(data)).toBe(true)
      await thread.close()
      expect(noted(data)).toBeNull()
      other.exec('ROLLBACK')
    }
    const thread = start()
    await expect.poll(() => settled).toMatchObject([{ outcome: 'imported' }])
    await thread.close()
  })
})

longTest('a start makes the folder of an inbox that nothing was imported from yet, and no other one', async () => {
  const { inbox, start, settled, faults } = await openCase()
  const aside = join(folder(), 'aside')
  renameSync(inbox, aside)
  const first = start()
  await expect.poll(() => existsSync(inbox)).toBe(true)
  for (const name of readdirSync(aside)) copyFileSync(join(aside, name), join(inbox, name))
  await expect.poll(() => settled).toMatchObject([{ outcome: 'imported' }])
  await first.close()
  expect(faults).toEqual([])
  rmSync(inbox, { recursive: true })
  const second = start()
  await expect.poll(() => second.status().inbox?.problem).toBe('ENOENT')
  expect(faults).toEqual([`the inbox ${inbox} cannot be read (ENOENT): mount its medium, or make the folder`])
  expect(existsSync(inbox)).toBe(false)
  mkdirSync(inbox)
  await expect.poll(() => second.status().inbox?.problem).toBeNull()
  await second.close()
})

test('counts are replaced by a new file: the old one keeps its content', () => {
  const data = folder()
  createTries(data).begin('a.zip 1')
  const old = join(data, 'old')
  linkSync(join(data, 'inbox-tries.json'), old)
  createTries(data).begin('b.zip 1')
  expect(JSON.parse(readFileSync(old, 'utf8'))).toEqual({ 'a.zip 1': 1 })
  expect(noted(data)).toEqual({ 'a.zip 1': 1, 'b.zip 1': 1 })
  expect(readdirSync(data).sort()).toEqual(['inbox-tries.json', 'old'])
})

test('counts of another shape are none, and the next ones replace them', () => {
  const data = folder()
  for (const text of oddNotes({ 'a.zip 1': 1 })) {
    writeFileSync(join(data, 'inbox-tries.json'), text)
    expect(createTries(data).begin('b.zip 1')).toBe(true)
    createTries(data).end('b.zip 1')
  }
  writeFileSync(join(data, 'inbox-tries.json'), '[["b.zip 1",2]]')
  expect(createTries(data).begin('b.zip 1')).toBe(true)
  expect(noted(data)).toEqual({ 'b.zip 1': 1 })
})
