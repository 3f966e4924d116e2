import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openReader } from '../../../../../src/store/database/open.ts'
import { createReads } from '../../../../../src/store/reads.ts'
import { openViews } from '../../../../../src/features/scanners/store/reads.ts'
import { buildViews } from '../../../../../src/features/scanners/views/osv/build.ts'
import { createFolderChoice } from '../../../../../src/features/scanners/views/osv/ecosystem-limit.ts'
import { closeBenches, openBench, record, textOf } from '../fixtures.ts'

const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
  closeBenches()
})

test('a build counts records with lone surrogates and malformed names, and does not fail', async () => {
  const bench = openBench()
  bench.store.publishOsv({
    one: record('one', '', ['\ud800', 'p'], ['\ud801', 'p'], ['\ud800:npm', '\udc00']),
    two: record('two', '', ['npm', '\ud800'], ['npm', '\ud801'], ['npm', 'p\0'], ['npm', 'p']),
    three: '{"affected":' + '['.repeat(9000) + ']'.repeat(9000) + '}',
    four: 'no record',
    five: record('five', '', ['..', 'p'], ['a/b', 'p'], ['__proto__', 'p'], ['NPX', 'p']),
  })
  const made = await bench.make()
  expect(made).toMatchObject({ records: 5, odd: 4 })
  const views = bench.open()
  expect(views.info.odd).toBe(4)
  expect(views.readViewRecord('[EMPTY]', 'one')).not.toBeNull()
  expect(views.readViewRecord('[EMPTY]', 'four')).not.toBeNull()
  expect(views.listCandidates('npm', 'p', '', 9).map(({ id }) => id)).toEqual(['two'])
  expect([views.hasView('npm'), views.hasView('nPx'), views.findView('nPx')]).toEqual([...[true, false, 'NPX']])
})

test('the folders of too many ecosystems are chosen by name, whatever their order', () => {
  const names = Array.from({ length: 50 }, (_, i) => `x${String((i * 7) % 50).padStart(2, '0')}`)
  const choose = (all: string[], most: number): string[] | null => {
    const choice = createFolderChoice(most)
    for (const name of all) choice.add(name)
    const chosen = choice.chosen()
    return chosen && [...chosen].sort()
  }
  const expected = ['GIT', '[EMPTY]', 'npm', 'x00', 'x01']
  expect(choose([...names, 'npm', 'GIT'], 5)).toEqual(expected)
  expect(choose(['npm', 'GIT', ...names.reverse()], 5)).toEqual(expected)
  expect(choose(names, 51)).toBeNull()
})

test('the chosen folders of too many ecosystems are the same by a full and by incremental builds', async () => {
  const bench = openBench()
  const build = async (before: string | null): Promise<string> => {
    const dir = mkdtempSync(join(tmpdir(), 'patchmirror-made-'))
    const db = openReader(bench.dir)
    cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
    if (db === null) throw new Error('there is no store')
    const reads = createReads(db)
    const archive = reads.osv.readArchive()
    const snapshot = reads.snapshots.readSnapshot('osv')
    if (archive === null || snapshot === null) throw new Error('nothing is published')
    const folder = join(dir, 'made')
    const pause = async (): Promise<void> => Promise.resolve()
    const { changed } = archive
    const own = { dataDir: bench.dir, reads: reads.osv, archive, changed, snapshot, folder, before }
    const listChanged = (): null => null
    await buildViews({ ...own, vendors: ['Root'], mostFolders: 4, listChanged, pause })
    db.close()
    return folder
  }
  const told = (folder: string): string[] => {
    const views = openViews(folder)
    cleanups.push(() => views.close())
    return [textOf(views, 'ecosystems.txt'), textOf(views, 'modified_id.csv'), `${views.info.odd}`]
  }
  const few = { A: record('A', '', ['x1', 'p']), B: record('B', '', ['npm', 'p']) }
  const many = {
    ...few,
    C: record('C', '', ['x2', 'p'], ['x3', 'p']),
    D: record('D', '', ['x0', 'p']),
    E: record('E', '', ['x9', 'p']),
  }
  bench.store.publishOsv(few)
  const first = await build(null)
  expect(told(first)[0]).toBe('npm\nx1\n')
  bench.store.publishOsv(many)
  const second = await build(first)
  expect(told(second)[0]).toBe('[EMPTY]\nnpm\nx0\nx1\n')
  expect(told(second)[2]).toBe('2')
  expect(told(await build(null))).toEqual(told(second))
  bench.store.publishOsv(few)
  expect(told(await build(second))).toEqual(told(first))
})
