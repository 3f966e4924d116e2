import { appendFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { afterEach, expect } from 'vitest'
import { acquireLock } from '../../../../../src/store/database/lock.ts'
import { generationDir, readCurrentViews, viewsDir } from '../../../../../src/features/scanners/store/generations.ts'
import { checkViews } from '../../../../../src/features/scanners/views/check.ts'
import { generateRecord } from '../../../../sandbox/feed/generate.ts'
import { createRandom } from '../../../../sandbox/feed/random.ts'
import { FILLED_AT } from '../../../../support/filled-store.ts'
import { LONG, longTest, test } from '../../../../support/tables.ts'
import { type ViewsBench, assetsOf, closeBenches, filesIn, openBench, record, textOf } from '../fixtures.ts'

afterEach(closeBenches)

const DAY = 86_400_000

const RECORDS = {
  'ROOT-A': record('ROOT-A', '2026-05-01T00:00:00Z', ['Root:Debian:12', 'rootio-curl']),
  'ROOT-B': record('ROOT-B', '2026-05-01T02:00:00.5+01:00', ['Root:Alpine:3.18', 'rootio-curl']),
  'ROOT-C,"d"': record('x', 'soon', ['Root:npm', '@rootio/a'], ['Root:Ubuntu:22.04', 'b']),
  'a/b é': record('a/b', '2026-06-01', ['npm', 'plain'], ['Rocky Linux:9', 'x']),
  none: '{"id":"none","modified":"2020-01-01"}',
}

test('the views have osv.dev’s layout: folders by ecosystem with upstream’s and derived records', async () => {
  const bench = openBench()
  const { archive } = bench.store.publishOsv(RECORDS)
  const made = await bench.make()
  expect(made).toEqual({ records: 5, changed: 5, odd: 0, views: 7, incremental: false })
  const views = bench.open()
  expect(views.listViews()).toEqual([
    { name: 'Alpine', records: 1, prefixes: ['Root'] },
    { name: 'Debian', records: 1, prefixes: ['Root'] },
    { name: 'Rocky Linux', records: 1, prefixes: [] },
    { name: 'Root', records: 3, prefixes: [] },
    { name: 'Ubuntu', records: 1, prefixes: ['Root'] },
    { name: '[EMPTY]', records: 1, prefixes: [] },
    { name: 'npm', records: 2, prefixes: ['Root'] },
  ])
  expect(textOf(views, 'ecosystems.txt')).toBe('Alpine\nDebian\nRocky Linux\nRoot\nUbuntu\n[EMPTY]\nnpm\n')
  const zip = (view: string): Record<string, string> => {
    const asset = views.readAsset(`${view}/all.zip`)
    const read = new AdmZip(join(views.folder, asset?.file ?? ''))
    return Object.fromEntries(read.getEntries().map((entry) => [entry.entryName, entry.getData().toString()]))
  }
  const own = RECORDS['ROOT-C,"d"']
  const ubuntu = /\{"ranges":\[\],"package": \{"name":"b".*?\} \}/
  const [plain = ''] = ubuntu.exec(own) ?? []
  const forms = ['Ubuntu:22.04', 'Ubuntu:22.04:LTS'].map((name) =>
    plain.replace('"Root:Ubuntu:22.04"', `"${name}","purl":"pkg:deb/ubuntu/b"`),
  )
  const derived = own.replace('"Root:npm"', '"npm","purl":"pkg:npm/%40rootio/a"').replace(plain, forms.join())
  expect(zip('npm')).toEqual({ 'ROOT-C,"d".json': derived, 'a/b é.json': RECORDS['a/b é'] })
  expect(zip('Root')['ROOT-C,"d".json']).toBe(own)
  expect(zip('Alpine')['ROOT-B.json']).toContain('"Alpine:v3.18"')
  expect(zip('[EMPTY]')).toEqual({ 'none.json': RECORDS.none })
  const whole = views.readAsset('all.zip')
  expect(readFileSync(join(views.folder, whole?.file ?? '')).equals(archive)).toBe(true)
})

test('the lists of dates are sorted newest first, then by id, and unreadable dates come last', async () => {
  const bench = openBench()
  bench.store.publishOsv({ ...RECORDS, 'ROOT-A2': RECORDS['ROOT-A'] })
  bench.store.damage("UPDATE osv_record SET modified = 'whenever'")
  await bench.make()
  const views = bench.open()
  expect(textOf(views, 'Root/modified_id.csv')).toBe(
    [
      '2026-05-01T01:00:00.5Z,ROOT-B',
      '2026-05-01T00:00:00Z,ROOT-A',
      '2026-05-01T00:00:00Z,ROOT-A2',
      '0001-01-01T00:00:00Z,"ROOT-C,""d"""',
      '',
    ].join('\n'),
  )
  const all = textOf(views, 'modified_id.csv').trim().split('\n')
  expect(all).toHaveLength(12)
  expect(all.slice(0, 3)).toEqual([
    '2026-06-01T00:00:00Z,Rocky Linux/a/b é',
    '2026-06-01T00:00:00Z,npm/a/b é',
    '2026-05-01T01:00:00.5Z,Alpine/ROOT-B',
  ])
})

test('the views find a record by view and id, and a package by ecosystem and name', async () => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  const views = bench.open()
  expect(views.readUpstreamRecord('ROOT-A')?.content.toString()).toBe(RECORDS['ROOT-A'])
  expect(views.readUpstreamRecord('none')?.content.toString()).toBe(RECORDS.none)
  expect(views.readUpstreamRecord('nobody')).toBeNull()
  expect(views.readViewRecord('Debian', 'ROOT-A')).toMatchObject({ prefixes: ['Root'] })
  expect(views.readViewRecord('Root', 'ROOT-A')).toMatchObject({ prefixes: [] })
  expect(views.readViewRecord('npm', 'ROOT-A')).toBeNull()
  expect(views.listCandidates('Debian:12', 'rootio-curl', '', 10)).toEqual([{ id: 'ROOT-A', derived: true }])
  expect(views.listCandidates('Root', 'rootio-curl', 'ROOT-A', 10)).toEqual([{ id: 'ROOT-B', derived: false }])
  expect(views.listCandidates('Root', 'rootio-curl', '', 1)).toHaveLength(1)
  expect(views.listCandidates('Debian', 'curl', '', 10)).toEqual([])
  const names = ['curl', 'rootio-curl']
  const { records, complete } = views.listPackageRecords('Debian:12', names, 10)
  expect([[...records.keys()], complete]).toEqual([['rootio-curl'], 2])
  expect(records.get('rootio-curl')?.map(({ id, read }) => [id, read()])).toEqual([
    ['ROOT-A', views.readViewRecord('Debian', 'ROOT-A')],
  ])
  const of = (limit: number) => views.listPackageRecords('Root', [...names, 'none'], limit)
  expect(
    of(3)
      .records.get('rootio-curl')
      ?.map(({ id }) => id),
  ).toEqual(['ROOT-A', 'ROOT-B'])
  expect([of(3).complete, of(2).complete, of(2).records.size]).toEqual([3, 1, 0])
  expect(views.listPackageRecords('No such', names, 10)).toEqual({
    records: new Map(),
    complete: 2,
  })
})

/** Some histories of a feed: what it holds at each snapshot. */
function history(seed: number, snapshots: number): Record<string, Buffer>[] {
  const random = createRandom(seed, 3)
  const held = new Map<string, Buffer>()
  return Array.from({ length: snapshots }, (_, at) => {
    for (let i = 0; i < 12; i++) {
      const { id, bytes } = generateRecord({ seed, at: FILLED_AT + at * DAY }, random.int(40))
      if (random.chance(0.3)) held.delete(id)
      else held.set(id, random.chance(0.1) ? Buffer.from('{"modified":"2026-01-01"}') : bytes)
    }
    return Object.fromEntries([...held].sort())
  })
}

const sorted = (assets: Record<string, string>): string[] =>
  Object.entries(assets)
    .map(([path, digest]) => `${path} ${digest}`)
    .sort()

longTest.each([1, 2])('an incremental build gives the same views as a full build: history %i', async (seed) => {
  const bench = openBench()
  for (const [at, records] of history(seed, LONG ? 4 : 3).entries()) {
    bench.store.publishOsv(records, FILLED_AT + at * DAY)
    const made = await bench.make()
    expect(made?.incremental).toBe(at > 0)
    const other = openBench()
    other.store.publishOsv(records, FILLED_AT + at * DAY)
    await other.make()
    expect(sorted(assetsOf(bench.open()))).toEqual(sorted(assetsOf(other.open())))
  }
})

longTest('an incremental build reads changed records only, reuses files, and keeps two generations', async () => {
  const bench = openBench()
  const names: string[] = []
  for (const [at, tag] of ['one', 'two', 'three'].entries()) {
    const changing = record('ROOT-A', '2026-05-01', ['Root:Debian:12', tag])
    bench.store.publishOsv({ ...RECORDS, 'ROOT-A': changing }, FILLED_AT + at * DAY)
    const made = await bench.make()
    expect(made?.changed).toBe(at === 0 ? 5 : 1)
    names.push(bench.folder())
  }
  expect(names.map((name) => existsSync(name))).toEqual([false, true, true])
  const [, before = '', now = ''] = names
  const kept = filesIn(before).filter((file) => filesIn(now).includes(file))
  expect(kept.filter((file) => /^[\da-f]{32}\.zip$/.test(file))).toHaveLength(5)
  expect(await bench.make()).toBeNull()
})

test('a search for a package finds it in any case where its ecosystem compares names without', async () => {
  const bench = openBench()
  const named = (id: string, ecosystem: string, name: string) =>
    [id, record(id, '2026-05-01', [ecosystem, name])] as const
  const records = [
    named('A', 'NuGet', 'Contoso.Data.Client'),
    named('B', 'Root:NuGet', 'Contoso.Data.Client'),
    named('C', 'npm', 'JSONStream'),
  ]
  bench.store.publishOsv(Object.fromEntries(records))
  await bench.make({ vendors: [] })
  const views = bench.open()
  const found = views.listPackagesNamed('CONTOSO.data.client', 10)
  expect(found.map(({ ecosystem, records: count }) => [ecosystem, count])).toEqual([
    ['NuGet', 1],
    ['Root', 1],
  ])
  expect(views.listPackages('NuGet', 'Contoso', '', 10)).toMatchObject([{ name: 'contoso.data.client' }])
  expect(views.listPackages('npm', 'JSON', '', 10)).toMatchObject([{ name: 'JSONStream' }])
  expect(views.listCandidates('npm', 'jsonstream', '', 10)).toEqual([])
  expect(views.listNamed('contoso.Data.client', '', 10)).toEqual([{ id: 'A' }, { id: 'B' }])
})

test('another setting causes a new generation of views', async () => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  const before = bench.open().info.changed
  const made = await bench.make({ vendors: [] })
  expect(made?.incremental).toBe(false)
  expect(bench.open().info.changed).toBe(before + 1) // other bytes of the same records
  const names = bench
    .open()
    .listViews()
    .map(({ name, prefixes }) => `${name}${prefixes.join()}`)
  expect(names).toEqual(['Rocky Linux', 'Root', '[EMPTY]', 'npm'])
  expect((await bench.make({ vendors: ['Root', 'Other'] }))?.incremental).toBe(false)
  expect(await bench.make({ vendors: ['Other', 'Root'] })).toBeNull()
})

test('views of older data have a later date than those of the newer, and so have those after them', async () => {
  const bench = openBench()
  const date = FILLED_AT / 1000
  const made = async (): Promise<number> => {
    await bench.make()
    return bench.open().info.changed
  }
  bench.store.publishOsv({ a: RECORDS['ROOT-A'] })
  expect(await made()).toBe(date)
  bench.store.damage(`INSERT INTO date_floor VALUES (1, ${date + 100})`) // a way back
  bench.store.publishOsv({ b: RECORDS['ROOT-B'] })
  expect(await made()).toBe(date + 101)
  bench.store.publishOsv({ c: RECORDS.none })
  expect(await made()).toBe(date + 102)
})

const DAMAGE: [string, (folder: string) => void][] = [
  ['an archive cut short', (folder) => truncateSync(join(folder, firstOf(folder, '.zip')), 30)],
  ['an archive with another byte', (folder) => flip(join(folder, firstOf(folder, '.zip')))],
  ['a list that is gone', (folder) => rmSync(join(folder, firstOf(folder, '.gz')))],
  ['a database cut short', (folder) => truncateSync(join(folder, 'views.db'), 5000)],
  ['a database that is none', (folder) => writeFileSync(join(folder, 'views.db'), 'x'.repeat(9000))],
  ['a database that is gone', (folder) => rmSync(join(folder, 'views.db'))],
]

const firstOf = (folder: string, ending: string): string =>
  filesIn(folder).find((file) => file.endsWith(ending) && file.length > 30) ?? ''

function flip(path: string): void {
  const bytes = readFileSync(path)
  bytes[40] = (bytes[40] ?? 0) ^ 1
  rmSync(path) // not through the hard link: the other generation's stays sound
  writeFileSync(path, bytes)
}

longTest.each(DAMAGE)('a build does not reuse a generation with %s', async (_, damage) => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  const sound = assetsOf(bench.open())
  expect(checkViews(bench.dir)).toEqual([])
  damage(bench.folder())
  expect(checkViews(bench.dir)).toMatchObject([{ kind: 'osv' }])
  expect(await bench.make({ rebuild: true })).toMatchObject({ incremental: false })
  expect(assetsOf(bench.open())).toEqual(sound)
  damage(bench.folder())
  bench.store.publishOsv({ ...RECORDS, more: '{}' }, FILLED_AT + DAY)
  expect(await bench.make()).toMatchObject({ incremental: false })
})

test('damaged bytes of a view are never served', async () => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  const views = bench.open()
  const file = join(bench.folder(), views.readAsset('Debian/all.zip')?.file ?? '')
  flip(file)
  appendFileSync(file, 'x')
  const zip = readFileSync(file)
  zip.fill(0x41, 45, 80)
  writeFileSync(file, zip)
  expect(() => views.readViewRecord('Debian', 'ROOT-A')).toThrow(/damaged/)
})

longTest('a build removes the unfinished folder of a killed process, and uses a finished one', async () => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  const left = join(viewsDir(bench.dir), 'making-osv')
  writeFileSync(left, 'not even a folder')
  rmSync(join(viewsDir(bench.dir), 'current-osv')) // killed between the folder's name and the pointer
  expect(readCurrentViews(bench.dir, 'osv')).toBeNull()
  expect(await bench.make()).toMatchObject({ records: 5 })
  expect(existsSync(left)).toBe(false)
  writeFileSync(join(viewsDir(bench.dir), 'current-osv'), `osv-${'0'.repeat(32)}\nx\n`)
  expect(readCurrentViews(bench.dir, 'osv')).toBeNull()
  expect(generationDir(bench.dir, 'x')).toContain('views')
})

test('only one process builds views at a time', async () => {
  const bench: ViewsBench = openBench()
  bench.store.publishOsv(RECORDS)
  const lock = acquireLock(bench.dir, 'views')
  await expect(bench.make()).rejects.toMatchObject({ code: 'locked' })
  lock.release()
  expect(await bench.make()).not.toBeNull()
})

test('a build before the first snapshot makes nothing, and an empty feed has empty lists', async () => {
  const bench = openBench()
  expect(await bench.make()).toBeNull()
  bench.store.publishOsv({})
  expect(await bench.make()).toMatchObject({ records: 0, views: 0 })
  const views = bench.open()
  expect(textOf(views, 'ecosystems.txt') + textOf(views, 'modified_id.csv')).toBe('')
})
