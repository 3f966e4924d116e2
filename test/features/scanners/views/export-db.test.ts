import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { afterEach, expect } from 'vitest'
import { exportDb } from '../../../../src/features/scanners/views/export-db.ts'
import { FILLED_AT } from '../../../support/filled-store.ts'
import { type ViewsBench, closeBenches, filesIn, openBench, record } from './fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

const folders: string[] = []

afterEach(() => {
  closeBenches()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const RECORDS = {
  A: record('A', '2026-05-01', ['Root:Debian:12', 'rootio-curl']),
  B: record('B', '2026-05-01', ['Root:npm', '@rootio/a']),
}

async function bench(records: Record<string, string> = RECORDS): Promise<ViewsBench & { target: string }> {
  const made = openBench()
  made.store.publishOsv(records)
  await made.make()
  const target = mkdtempSync(join(tmpdir(), 'patchmirror-db-'))
  folders.push(target)
  return { ...made, target }
}

const BOTH = (...names: string[]): string[] =>
  names.flatMap((name) => [`osv-scanner/${name}/all.zip`, `osv-scalibr/${name}/all.zip`])

test('export-db writes each ecosystem’s archive in both layouts, as it is served', async () => {
  const { open, target } = await bench()
  const views = open()
  expect(exportDb(views, target, [])).toEqual({
    written: BOTH('Debian', 'Root', 'npm'),
    kept: 0,
    removed: [],
    skipped: [],
  })
  for (const path of BOTH('Debian')) {
    const file = readFileSync(join(target, path))
    expect(file.equals(readFileSync(join(views.folder, views.readAsset('Debian/all.zip')?.file ?? '')))).toBe(true)
    expect(new AdmZip(file).getEntries().map(({ entryName }) => entryName)).toEqual(['A.json'])
  }
  expect(filesIn(join(target, 'osv-scanner', 'Debian'))).toEqual(['all.zip'])
})

test('export-db rewrites only files that differ, also a truncated one', async () => {
  const { store, make, open, target } = await bench()
  exportDb(open(), target, [])
  const npm = join(target, 'osv-scanner/npm/all.zip')
  const untouched = statSync(npm).ino
  expect(exportDb(open(), target, [])).toMatchObject({ written: [], kept: 6 })
  truncateSync(join(target, 'osv-scalibr/npm/all.zip'), 20)
  store.publishOsv({ ...RECORDS, A: record('A', '2026-05-02', ['Root:Debian:12', 'x']) }, FILLED_AT + 86_400_000)
  await make()
  expect(exportDb(open(), target, []).written.toSorted()).toEqual(
    [...BOTH('Debian', 'Root'), 'osv-scalibr/npm/all.zip'].sort(),
  )
  expect(statSync(npm).ino).toBe(untouched)
})

test('export-db removes only files that it wrote and that are no longer needed', async () => {
  const { store, make, open, target } = await bench()
  exportDb(open(), target, [])
  mkdirSync(join(target, 'osv-scanner/Mine'))
  writeFileSync(join(target, 'osv-scanner/Mine/all.zip'), 'mine')
  writeFileSync(join(target, 'osv-scalibr/npm/all.zip'), 'replaced by somebody')
  store.publishOsv({ A: RECORDS.A }, FILLED_AT + 86_400_000)
  await make()
  expect(exportDb(open(), target, ['Debian'])).toMatchObject({ removed: [] })
  expect(exportDb(open(), target, [])).toMatchObject({ removed: ['osv-scanner/npm/all.zip'] })
  expect(existsSync(join(target, 'osv-scanner/npm'))).toBe(false)
  expect(readFileSync(join(target, 'osv-scanner/Mine/all.zip'), 'utf8')).toBe('mine')
  expect(readFileSync(join(target, 'osv-scalibr/npm/all.zip'), 'utf8')).toBe('replaced by somebody')
})

test('export-db selects ecosystems by name, and an unknown one is a usage error', async () => {
  const { open, target } = await bench()
  expect(exportDb(open(), target, ['npm', 'npm']).written).toEqual(BOTH('npm'))
  expect(() => exportDb(open(), target, ['Npm'])).toThrow(/ecosystem Npm; there are: Debian, Root, npm/)
})

longTest('export-db skips a name that would lead out of the folder', async () => {
  const odd = { C: record('C', '2026-05-01', ['..', 'x'], ['a/b', 'x'], ['ok', 'x']) }
  const { open, target } = await bench(odd)
  expect(exportDb(open(), target, [])).toEqual({
    written: BOTH('ok'),
    kept: 0,
    removed: [],
    skipped: ['..', 'a/b'],
  })
})

test('export-db does not write a damaged archive, and keeps the earlier file', async () => {
  const { open, target } = await bench()
  exportDb(open(), target, [])
  const views = open()
  const sound = readFileSync(join(target, 'osv-scanner/npm/all.zip'))
  truncateSync(join(views.folder, views.readAsset('npm/all.zip')?.file ?? ''), 50)
  rmSync(join(target, 'osv-scalibr/npm/all.zip'))
  expect(() => exportDb(views, target, ['npm'])).toThrow(/npm/)
  expect(readFileSync(join(target, 'osv-scanner/npm/all.zip')).equals(sound)).toBe(true)
  expect(filesIn(join(target, 'osv-scalibr/npm'))).toEqual([])
})

test('export-db names a folder that cannot be written', async () => {
  const { open, target } = await bench()
  const file = join(target, 'file')
  writeFileSync(file, '')
  expect(() => exportDb(open(), join(file, 'below'), [])).toThrow(
    /cannot write to .*below \(E[A-Z]+\): name a folder that this user may write/,
  )
})

test.each([
  ['osv-scanner', ''],
  ['osv-scalibr', 'npm'],
])('export-db refuses a link below the folder and writes nothing through it: %s/%s', async (...to) => {
  const { open, target } = await bench()
  const elsewhere = mkdtempSync(join(tmpdir(), 'patchmirror-db-'))
  folders.push(elsewhere)
  writeFileSync(join(elsewhere, 'all.zip'), 'precious')
  const [layout, name] = to
  if (name !== '') mkdirSync(join(target, layout))
  const link = join(target, layout, name)
  symlinkSync(elsewhere, link)
  expect(() => exportDb(open(), target, [])).toThrow('is a symbolic link: remove it')
  expect(readFileSync(join(elsewhere, 'all.zip'), 'utf8')).toBe('precious')
  expect(filesIn(elsewhere)).toEqual(['all.zip'])
  expect(existsSync(join(target, 'osv-scanner', 'Debian'))).toBe(false)
  unlinkSync(link)
  expect(exportDb(open(), target, []).written).toHaveLength(6)
})

longTest('export-db accepts a folder that is reached by a link', async () => {
  const { open, target } = await bench()
  const link = `${target}-link`
  symlinkSync(target, link)
  folders.push(link)
  expect(exportDb(open(), link, []).written).toHaveLength(6)
})
