import { copyFileSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import { beforeEach, describe, expect } from 'vitest'
import { openBundle } from '../../../../src/features/bundles/import/open.ts'
import { openParts } from '../../../../src/features/bundles/import/split-reader.ts'
import { groupFiles } from '../../../../src/features/bundles/format/split-names.ts'
import { createBundleWriter } from '../../../../src/features/bundles/export/writer.ts'
import { SMALL, head, keyPair, refusal, scratch, trust, writeBundle } from '../fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

let folder = ''
let path = ''
let files: string[] = []
const key = keyPair(scratch(), 'key')
const whom = trust([key])

beforeEach(async () => {
  folder = scratch()
  path = join(folder, 'b.zip')
  files = await writeBundle(path, [key], SMALL, {}, 500)
})

describe('a bundle in parts', () => {
  test('is the whole bundle in pieces, with a list of digests', async () => {
    const whole = join(folder, 'whole.zip')
    await writeBundle(whole, [key])
    const parts = files.slice(0, -1)
    expect(parts.length).toBeGreaterThan(3)
    expect(parts.map((part) => basename(part))).toEqual(parts.map((_, i) => `b.zip.${String(i + 1).padStart(3, '0')}`))
    const joined = Buffer.concat(parts.map((part) => readFileSync(part)))
    expect(joined.equals(readFileSync(whole))).toBe(true)
    const sums = parts.map(
      (part) => `${createHash('sha256').update(readFileSync(part)).digest('hex')}  ${basename(part)}\n`,
    )
    expect(readFileSync(`${path}.sha256`, 'utf8')).toBe(sums.join(''))
    const { status } = spawnSync('sha256sum', ['-c', '--quiet', 'b.zip.sha256'], { cwd: folder })
    expect(status).toBe(0)
  })

  longTest('is found by any one of them, by its name, by the list, or by all in any order', async () => {
    const parts = files.slice(0, -1)
    for (const given of [[files[2] ?? ''], [path], [`${path}.sha256`], parts.toReversed(), files])
      expect(await refusal(given, whom)).toBeNull()
    rmSync(`${path}.sha256`)
    expect(await refusal([`${path}.001`], whom)).toBeNull()
  })

  test('names the part that is missing', async () => {
    rmSync(`${path}.002`)
    expect(await refusal([path], whom)).toContain('b.zip.002 of')
    rmSync(`${path}.sha256`)
    expect(await refusal([path], whom)).toContain('b.zip.002 of')
  })

  test('names the last part as missing by the list, and without the list that a part is missing', async () => {
    const last = files.at(-2) ?? ''
    rmSync(last)
    expect(await refusal([path], whom)).toContain(basename(last))
    rmSync(`${path}.sha256`)
    expect(await refusal([path], whom)).toContain('cut short')
  })

  test('names the part that is half-copied', async () => {
    truncateSync(`${path}.002`, 499)
    expect(await refusal([path], whom)).toContain('b.zip.002 is truncated')
    truncateSync(`${path}.002`, 0)
    expect(await refusal([path], whom)).toContain('b.zip.002 is empty')
  })

  longTest('names the last part when that is half-copied', async () => {
    const last = files.at(-2) ?? ''
    truncateSync(last, 10)
    expect(await refusal([path], whom)).toContain(`${last} does not match the list`)
  })

  test("names another bundle's part among its own", async () => {
    const other = join(scratch(), 'b.zip')
    await writeBundle(other, [key], SMALL, { sequence: 999 }, 500)
    copyFileSync(`${other}.002`, `${path}.002`)
    expect(await refusal([path], whom)).toContain(`${path}.002 does not match the list`)
    copyFileSync(`${path}.001`, `${path}.099`)
    expect(await refusal([path], whom)).toContain('missing')
  })

  test('names a part that is in place of another', async () => {
    copyFileSync(`${path}.002`, `${path}.003`)
    expect(await refusal([path], whom)).toContain('b.zip.003 has the same bytes as b.zip.002')
    renameSync(`${path}.003`, join(folder, 'other.001'))
    expect(await refusal([`${path}.001`, join(folder, 'other.001')], whom)).toContain('not parts of one bundle')
    expect(await refusal([`${path}.001`, `${path}.001`], whom)).toContain('given twice')
  })

  test('replaces all parts of an older bundle', async () => {
    writeFileSync(join(folder, 'b.zip.note'), 'mine')
    const writer = createBundleWriter(path, { split: null, force: true })
    await writer.addDeflated('rows/osv/osv-record-00001.jsonl', Buffer.from('x'))
    await writer.complete(head(), [key])
    const now = await writer.publish()
    expect(now).toEqual([path])
    expect(files.filter((file) => !isGone(file))).toEqual([])
    expect(readFileSync(join(folder, 'b.zip.note'), 'utf8')).toBe('mine')
    const bundle = await openBundle([path], whom)
    await bundle.close()
  })
})

test('a file that cannot be read any more is a fault of the medium, which says nothing of the bundle', async () => {
  const path = join(folder, 'pulled.zip')
  writeFileSync(path, 'a bundle')
  const parts = await openParts([path])
  await parts.close()
  await expect(parts.read(0, 4)).rejects.toMatchObject({ code: 'storage' })
})

test('the files of several bundles are grouped by bundle', () => {
  expect(groupFiles(['a.zip', 'b.zip.002', 'c.zip', 'b.zip.001', 'b.zip.sha256'])).toEqual([
    ['a.zip'],
    ['b.zip.002', 'b.zip.001', 'b.zip.sha256'],
    ['c.zip'],
  ])
})

function isGone(file: string): boolean {
  try {
    readFileSync(file)
    return false
  } catch {
    return true
  }
}
