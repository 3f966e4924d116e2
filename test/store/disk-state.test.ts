import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nameStorageError } from '../../src/store/database/faults.ts'
import { awaitRoom, folderBytes, probeStorage } from '../../src/store/disk-state.ts'
import { emptyDisk, fillDisk, limitInodes, makeReadOnly, mountDisk, unmountDisk } from '../support/small-disk.ts'

let dir: string
let mounted: boolean

beforeEach(() => {
  const disk = mountDisk('4m')
  mounted = disk !== null
  dir = disk ?? mkdtempSync(join(tmpdir(), 'patchmirror-room-'))
})

afterEach(() => unmountDisk(dir))

test('a full disk is reported until there is room again', (context) => {
  if (!mounted) return context.skip('no file system can be mounted')
  expect(probeStorage(dir, true)).toMatchObject({ state: 'ok', reason: null })
  fillDisk(dir)
  const full = probeStorage(dir, true)
  expect(full).toMatchObject({ state: 'full', freeBytes: 0 })
  expect(full.reason).toContain('data.dir')
  expect(probeStorage(dir, false).state).toBe('full')
  emptyDisk(dir)
  expect(probeStorage(dir, true).state).toBe('ok')
  expect(readdirSync(dir)).toEqual([])
})

test('a disk without free inodes says so: it may have gigabytes free', (context) => {
  if (!mounted) return context.skip('no file system can be mounted')
  limitInodes(dir, 4)
  for (let n = 0; n < 3; n++) writeFileSync(join(dir, `file-${n}`), '')
  const { state, reason, freeBytes } = probeStorage(dir, true)
  expect([state, reason]).toEqual([
    'full',
    expect.stringMatching(/data\.dir.* has no free inodes .*: remove some files$/),
  ])
  expect(freeBytes).toBeGreaterThan(1_000_000)
  const error = Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  expect(String(nameStorageError(error, dir))).toMatch(/ has no free inodes .*: remove some files and try again/)
})

test('a disk that is mounted read-only is failing, also where nothing is written', (context) => {
  if (!mounted) return context.skip('no file system can be mounted')
  expect(probeStorage(dir, false).state).toBe('ok')
  makeReadOnly(dir)
  for (const write of [true, false])
    expect(probeStorage(dir, write)).toMatchObject({
      state: 'failing',
      reason: 'the data folder (data.dir) cannot be written to (EROFS)',
    })
})

test('a folder that cannot be written to is failing', () => {
  const { state, reason } = probeStorage(join(dir, 'gone'), true)
  expect([state, reason]).toEqual(['failing', expect.stringContaining('ENOENT')])
})

test('work that waits for room is done once when the folder is writable, however often it was refused', async () => {
  const gone = join(dir, 'gone')
  const done: string[] = []
  const retry = awaitRoom<string>(gone, (name) => done.push(name), 1)
  for (const name of ['osv', 'feeds', 'osv']) retry(name)
  mkdirSync(gone)
  await expect.poll(() => done).toEqual(['osv', 'feeds'])
  retry('catalog')
  await expect.poll(() => done).toEqual(['osv', 'feeds', 'catalog'])
})

test('the size of a folder is that of all files below it, without following links', async () => {
  mkdirSync(join(dir, 'derived/views/one'), { recursive: true })
  writeFileSync(join(dir, 'mirror.db'), Buffer.alloc(3000))
  writeFileSync(join(dir, 'derived/views/one/all.zip'), Buffer.alloc(500))
  symlinkSync(join(dir, 'mirror.db'), join(dir, 'derived/link'))
  expect(await folderBytes(dir)).toBe(3500)
  expect(await folderBytes(join(dir, 'gone'))).toBeNull()
})
