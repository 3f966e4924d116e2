import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { describe, expect, onTestFinished } from 'vitest'
import { exchange } from '../exchange.ts'
import { JSON_PATH, ZIP_PATH, recordPath, sandboxes } from '../fixtures.ts'
import { bothTest, LONG, test } from '../../support/tables.ts'

const open = sandboxes()
const REAL = '../shared/data/osv-real.zip'
const REAL_INDEX = '../shared/data/osv-real.all.json'
/** In the long suite alone, where the records are there. */
const testOfReal = LONG ? bothTest.skipIf(!existsSync(REAL)) : (): void => undefined
const series = (n: number) => [`../shared/data/series/t${n}.zip`, `../shared/data/series/t${n}.all.json`]

function smallArchive(): string {
  const zip = new AdmZip()
  zip.addFile('B-2.json', Buffer.from('{"id":"B-2","modified":"2026-01-01T00:00:00Z"}\n'))
  zip.addFile('A-1.json', Buffer.from('{\n "id":"A-1","modified":"2026-02-01T00:00:00.25Z"}'))
  zip.addFile('é %.json', Buffer.from('not json'))
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'given.zip')
  writeFileSync(path, zip.toBuffer())
  return path
}

describe('a given archive', () => {
  test('is served byte for byte, with an index made from its records', async () => {
    const path = smallArchive()
    const { url, feed } = await open({ osvZip: path })
    expect((await exchange(url + ZIP_PATH)).body.equals(readFileSync(path))).toBe(true)
    expect(JSON.parse((await exchange(url + JSON_PATH)).body.toString())).toEqual([
      { id: 'A-1', modified: '2026-02-01T00:00:00.25Z' },
      { id: 'B-2', modified: '2026-01-01T00:00:00Z' },
      { id: 'é %', modified: '0001-01-01T00:00:00Z' },
    ])
    expect((await exchange(url + recordPath('é %'))).body.toString()).toBe('not json')
    feed.change(1)
    const changed = (await exchange(url + ZIP_PATH)).body
    expect(new AdmZip(changed).getEntries().map((entry) => entry.entryName)).toEqual([
      'A-1.json',
      'B-2.json',
      'é %.json',
    ])
  })

  test('that cannot be read is an error at the start', async () => {
    await expect(open({ osvZip: '/nowhere.zip' })).rejects.toThrow('ENOENT')
    const path = smallArchive()
    writeFileSync(path, 'not a zip')
    await expect(open({ osvZip: path })).rejects.toThrow('not a zip archive')
  })

  testOfReal('of real records is served unchanged, with its index', async () => {
    const { url, feed } = await open({ osvZip: REAL, osvIndex: REAL_INDEX })
    expect((await exchange(url + JSON_PATH)).body.equals(readFileSync(REAL_INDEX))).toBe(true)
    expect((await exchange(url + ZIP_PATH)).body.equals(readFileSync(REAL))).toBe(true)
    const zip = new AdmZip(readFileSync(REAL))
    for (const id of feed.ids().filter((_, i) => i % 100 === 0)) {
      const { body } = await exchange(url + recordPath(id))
      expect(body.equals(zip.readFile(`${id}.json`) ?? Buffer.alloc(0)), id).toBe(true)
    }
    expect(feed.change(50)).toHaveLength(50)
    expect(feed.withdraw(5)).toHaveLength(5)
  })

  test.skipIf(!existsSync(series(0)[0] ?? ''))('can replace another one', async () => {
    const [zip0, index0] = series(0)
    const [zip1 = '', index1 = ''] = series(1)
    const { url, feed } = await open({ osvZip: zip0 ?? '', osvIndex: index0 ?? '' })
    const before = await exchange(url + ZIP_PATH)
    expect(await feed.load(zip1, index1)).toHaveLength(825)
    const after = await exchange(url + ZIP_PATH)
    expect(after.body.equals(readFileSync(zip1))).toBe(true)
    expect((await exchange(url + JSON_PATH)).body.equals(readFileSync(index1))).toBe(true)
    const moved = [before, after].map(({ headers }) => Date.parse(headers['last-modified'] ?? ''))
    expect(moved[1]).toBeGreaterThan(moved[0] ?? NaN)
  })
})
