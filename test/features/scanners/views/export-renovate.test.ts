import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect } from 'vitest'
import { longTest, test } from '../../../support/tables.ts'
import { exportDb } from '../../../../src/features/scanners/views/export-db.ts'
import { FILLED_AT } from '../../../support/filled-store.ts'
import { closeBenches, filesIn, openBench, record } from './fixtures.ts'

const folders: string[] = []
afterEach(() => {
  closeBenches()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A record with more members, such as `withdrawn`. */
const withMore = (more: object, ...about: Parameters<typeof record>): string =>
  JSON.stringify({ ...(JSON.parse(record(...about)) as object), ...more })

const RECORDS = {
  A: record('A', '2026-05-01', ['npm', '@scope/a'], ['Debian:12', 'a']),
  B: record('B', '2026-05-01', ['Root:npm', '@scope/a']),
  C: record('C', '2026-05-01', ['PyPI', 'Zope.Interface']),
  D: record('D', '2026-05-01', ['Maven', 'org.a:b']),
  E: record('E', '2026-05-01', ['Go', 'github.com/A/b']),
  F: withMore({ withdrawn: '2026-05-02T00:00:00Z' }, 'F', '2026-05-01', ['npm', '@scope/a']),
  G: withMore({ details: 'one\u2028two\u2029three' }, 'G', '2026-05-01', ['crates.io', 'c']),
  H: record('H', '2026-05-01', ['crates.io', 'c']),
}

async function bench() {
  const made = openBench()
  made.store.publishOsv(RECORDS)
  await made.make()
  const target = mkdtempSync(join(tmpdir(), 'patchmirror-renovate-'))
  folders.push(target)
  return { ...made, target }
}

/** What the real library finds, in a process of its own: it reads its settings when it is loaded. */
async function asked(root: string, questions: [ecosystem: string, name: string][]) {
  const program = `
    import { OsvOffline } from '@renovatebot/osv-offline'
    const database = await OsvOffline.create()
    const found = []
    for (const [ecosystem, name] of ${JSON.stringify(questions)})
      found.push((await database.getVulnerabilities(ecosystem, name)).map(({ id }) => id))
    database[Symbol.dispose]()
    console.log(JSON.stringify(found))`
  const env = { ...process.env, OSV_OFFLINE_ROOT_DIR: root, OSV_OFFLINE_DISABLE_DOWNLOAD: 'true' }
  const options = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, options, { env })
  return JSON.parse(stdout) as string[][]
}

longTest('osv-offline finds in the files of export-db what the records say, without a network', async () => {
  const { open, target } = await bench()
  const { written } = exportDb(open(), target, [], 'renovate')
  expect(written.toSorted()).toEqual(['crates.io', 'go', 'maven', 'npm', 'pypi'].map((name) => `${name}.nedb`))
  expect(
    await asked(target, [
      ['npm', '@scope/a'],
      ['npm', 'a'],
      ['PyPI', 'zope-interface'],
      ['PyPI', 'Zope.Interface'],
      ['Maven', 'org.a:b'],
      ['Go', 'github.com/A/b'],
      ['crates.io', 'c'],
      ['Hex', 'c'],
    ]),
  ).toEqual([['A', 'B'], [], ['C'], ['C'], ['D'], ['E'], ['G', 'H'], []])
})

test('export-db leaves a file of Renovate that is as it should be, and removes only its own', async () => {
  const { store, make, open, target } = await bench()
  exportDb(open(), target, [], 'renovate')
  exportDb(open(), target, ['npm'])
  const npm = join(target, 'npm.nedb')
  const untouched = statSync(npm).ino
  writeFileSync(join(target, 'hex.nedb'), 'mine')
  writeFileSync(join(target, 'go.nedb'), 'replaced by somebody')
  store.publishOsv({ A: RECORDS.A, B: RECORDS.B }, FILLED_AT + 86_400_000)
  await make()
  expect(exportDb(open(), target, [], 'renovate')).toMatchObject({
    written: [],
    kept: 1,
    skipped: [],
    removed: ['crates.io.nedb', 'maven.nedb', 'pypi.nedb'],
  })
  expect(statSync(npm).ino).toBe(untouched)
  expect(readFileSync(join(target, 'go.nedb'), 'utf8')).toBe('replaced by somebody')
  expect(filesIn(join(target, 'osv-scanner', 'npm'))).toEqual(['all.zip'])
  expect(exportDb(open(), target, []).removed).toEqual([])
  expect(existsSync(npm)).toBe(true)
})

test('export-db names the ecosystems that Renovate reads', async () => {
  const { open, target } = await bench()
  expect(() => exportDb(open(), target, ['Debian'], 'renovate')).toThrow(
    'no record that Renovate reads names the ecosystem Debian; there are: Go, Maven, PyPI, crates.io, npm',
  )
  expect(exportDb(open(), target, ['npm'], 'renovate').written).toEqual(['npm.nedb'])
})
