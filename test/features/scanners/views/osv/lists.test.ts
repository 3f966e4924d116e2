import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, expect } from 'vitest'
import { longTest, test } from '../../../../support/tables.ts'
import { createRandom } from '../../../../sandbox/feed/random.ts'
import type { StampRow } from '../../../../../src/features/scanners/views/osv/lists/merge.ts'
import { writeStamps } from '../../../../../src/features/scanners/views/osv/lists/lists.ts'

const folder = mkdtempSync(join(tmpdir(), 'patchmirror-lists-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const DAMAGED = '00000000000000000000000000000000.gz'
const random = createRandom(5, 2)

function rowOf(number: number): StampRow {
  const day = `0${String(random.int(9) + 1)}`
  const fraction = ['000000000', '500000000', '123456789'][random.int(3)] ?? ''
  return { instant: `2026-05-${day}T00:00:00.${fraction}`, name: `npm/R-é-${String(number)}` }
}

function inOrder(rows: Iterable<StampRow>): [string, string][] {
  const pairs = Array.from(rows, ({ instant, name }): [string, string] => [instant, name])
  return pairs.sort(([a, one], [b, other]) => {
    if (a === b) return Buffer.compare(Buffer.from(one), Buffer.from(other))
    return a < b ? 1 : -1
  })
}

const made = (rows: Iterable<StampRow>) => writeStamps(folder, () => inOrder(rows), null)

longTest('a list that is merged with what changed is the list of all rows', async () => {
  const rows = new Map(Array.from({ length: 8000 }, (_, i) => [i, rowOf(i)])) // more than one window
  for (let round = 0; round < 3; round++) {
    const { file } = await made(rows.values())
    const change = { removed: [] as StampRow[], added: [] as StampRow[] }
    for (let i = 0; i < 50; i++) {
      const number = random.int(9000)
      const before = rows.get(number)
      const row = rowOf(number)
      if (before !== undefined) change.removed.push(before)
      rows.delete(number)
      if (random.chance(0.2)) continue
      change.added.push(row)
      rows.set(number, row)
    }
    if (round === 1) change.added.push({ instant: '0001-01-01T00:00:00.000000000', name: 'last' })
    if (round === 1) rows.set(-1, { instant: '0001-01-01T00:00:00.000000000', name: 'last' })
    const notAgain = (): never => {
      throw new Error('the rows of all records were read')
    }
    const merged = await writeStamps(folder, notAgain, { folder, file, change })
    expect(merged).toEqual(await made(rows.values()))
  }
})

test('a list is made of all rows where it cannot be merged', async () => {
  const one = rowOf(1)
  const two = rowOf(2)
  const { file } = await made([one])
  const quoted = { instant: two.instant, name: 'a "b"' }
  const withQuote = await made([quoted])
  const cases: [string, { removed: StampRow[]; added: StampRow[] }][] = [
    ['missing.gz', { removed: [], added: [two] }],
    [file, { removed: [two], added: [] }],
    [file, { removed: [one], added: [quoted] }],
    [file, { removed: [one], added: [{ ...two, instant: '' }] }],
    [withQuote.file, { removed: [quoted], added: [two] }],
    [DAMAGED, { removed: [], added: [two] }],
    ['cut.gz', { removed: [], added: [two] }],
    ['none.gz', { removed: [], added: [two] }],
  ]
  writeFileSync(join(folder, DAMAGED), gzipSync('2026-05-01T00:00:00Z,x\n'))
  writeFileSync(join(folder, 'cut.gz'), gzipSync('2026-05-01T00:00:00Z,x'))
  writeFileSync(join(folder, 'none.gz'), '2026-05-01T00:00:00Z,x\n')
  for (const [old, change] of cases) {
    let read = false
    const rows = () => {
      read = true
      return inOrder([two])
    }
    expect((await writeStamps(folder, rows, { folder, file: old, change })).size).toBeGreaterThan(20)
    expect([old, read]).toEqual([old, true])
  }
})
