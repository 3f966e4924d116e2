import { cpSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownerOf } from '../../../src/features/fleet/owner.ts'
import { createReporter, listReaders, writeReader } from '../../../src/features/fleet/readers.ts'
import { createMemoryBucket } from '../../support/fleet/memory-store.ts'
import { folder } from '../bundles/air-gap.ts'

const id = 'ab'.repeat(16)
const REPORT = {
  id,
  name: 'edge-1',
  site: null,
  role: 'reader',
  leads: false,
  generation: 3,
  lagSeconds: 0,
  version: '1.0.0',
  address: null,
  deflater: null,
  stopped: false,
  at: '2026-05-01T00:00:00.000Z',
}

test('what others wrote among the reports of the mirrors is left out, and its amount is bounded', async () => {
  let now = 0
  const bucket = createMemoryBucket({ now: () => now++ })
  const store = bucket.client()
  const other = (n: number): string => `readers/${n.toString(16).padStart(32, '0')}.json`
  for (let n = 0; n < 600; n++) bucket.tamper(other(n), Buffer.from('no report'))
  await writeReader(store, REPORT)
  const forged = {
    ...REPORT,
    name: 'edge-2',
    site: 'x'.repeat(9000),
    version: '\u001b[2J',
    generation: 2 ** 53,
  }
  bucket.tamper(other(1), Buffer.from(JSON.stringify(forged)))
  bucket.tamper(other(2), Buffer.alloc(20_000, ' '))
  bucket.tamper(other(3), Buffer.from(JSON.stringify({ ...REPORT, at: 'never' })))
  bucket.tamper('readers/not of the fleet', Buffer.from('x'))
  const before = bucket.calls.get
  const found = await listReaders(store)
  expect(found.map(({ generation, site }) => [generation, site?.length])).toEqual([
    [3, undefined],
    [0, 500],
  ])
  expect(bucket.calls.get - before).toBe(500)
})

test('a copy of a data folder is another mirror, under the same path too; a restart is not', () => {
  const dir = join(folder(), 'data')
  cpSync('test/features/fleet', dir, { recursive: true })
  const owner = ownerOf(dir)
  expect(ownerOf(dir)).toBe(owner)
  renameSync(dir, `${dir}-moved`)
  cpSync(`${dir}-moved`, dir, { recursive: true })
  expect(ownerOf(dir)).not.toBe(owner)
})

test('a mirror writes what it says when that changes, and each ten minutes', async () => {
  const bucket = createMemoryBucket()
  let now = 0
  const write = createReporter(bucket.client(), () => now)
  const writtenAt = async (at: number, report: typeof REPORT): Promise<number> => {
    now = at
    const before = bucket.calls.put
    await write(report)
    return bucket.calls.put - before
  }
  expect(await writtenAt(0, REPORT)).toBe(1)
  expect(await writtenAt(60_000, { ...REPORT, at: '2026-01-01T00:01:00.000Z' })).toBe(0)
  expect(await writtenAt(61_000, { ...REPORT, generation: REPORT.generation + 1 })).toBe(1)
  expect(await writtenAt(120_000, { ...REPORT, generation: REPORT.generation + 1 })).toBe(0)
  expect(await writtenAt(661_000, { ...REPORT, generation: REPORT.generation + 1 })).toBe(1)
})
