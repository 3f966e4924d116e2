import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { atomEntries } from '../../support/atom.ts'
import { expect, onTestFinished } from 'vitest'
import { createViewsInUse } from '../../../src/features/scanners/routes/generation.ts'
import type { DuringReads } from '../../../src/features/findings/judge/during.ts'
import { followTags } from '../../../src/features/findings/judge/tags.ts'
import { createVexRules } from '../../../src/features/findings/judge/vex.ts'
import { inspectOthers } from '../../../src/store/database/inspect.ts'
import { openFindings, removeFindings } from '../../../src/store/findings/database.ts'
import type { FindingChangeCounts } from '../../../src/store/findings/reads.ts'
import { asSentence } from '../../../src/features/lookup/answers/html.ts'
import { NOT_JUDGED } from '../../../src/store/findings/words.ts'
import { createFindingsStore } from '../../../src/store/findings/writes.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { createPageMaker } from '../../../src/features/pages/make-page.ts'
import { listTags } from '../../../src/features/findings/answers.ts'
import { performFindings } from '../../../src/features/findings/task.ts'
import { derivedVendors } from '../../../src/features/scanners/views/osv/ecosystems.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { below, carry, folder } from '../bundles/air-gap.ts'
import {
  affecting,
  componentsOf,
  openFindingsBench,
  readFindings,
  readKnown,
  sbomOf,
  vexAbout,
  visibleRows,
} from './fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const log = (dir: string) => readFindings(dir, (reads) => reads.listLog(0, 1000))

test('a new record, a fix, and a removed record are logged for the tags that have the package', async () => {
  const bench = await openFindingsBench()
  const { dir } = bench
  await bench.crawl()
  await bench.publish({})
  expect(await bench.judge()).toMatchObject({ read: 4, reset: null, last: 0 })
  const components = componentsOf(dir)
  const [one] = components
  if (one === undefined) throw new Error('no component')
  const { ecosystem, name } = one
  const owners = [
    ...new Set(components.filter((c) => c.ecosystem === ecosystem && c.name === name).map(({ owner }) => owner)),
  ]
  const count = (owner: string): number =>
    components.filter((c) => c.owner === owner && c.ecosystem === ecosystem && c.name === name).length
  const counted = (kind: keyof FindingChangeCounts) =>
    Object.fromEntries(
      log(dir)
        .filter((row) => row[kind] > 0)
        .map((row) => [row.owner, row[kind]]),
    )
  const expected = Object.fromEntries(owners.map((owner) => [owner, count(owner)]))

  await bench.publish({ 'T-1': affecting(ecosystem, name, null) })
  expect(await bench.judge()).toMatchObject({ read: 0, records: { tags: owners.length } })
  expect(counted('found')).toEqual(expected)
  expect([counted('fixes'), counted('foundFixable')]).toEqual([{}, {}])
  expect(log(dir)[0]?.details[0]).toMatchObject(['new', 'T-1', name, expect.any(String), 0, ''])

  await bench.publish({ 'T-1': affecting(ecosystem, name, '99999.0') })
  await bench.judge()
  expect([counted('fixes'), counted('foundFixable')]).toEqual([expected, {}])
  expect(log(dir).at(-1)?.details[0]).toMatchObject(['fix', 'T-1', name, expect.any(String), 1, ''])
  const tag = readFindings(dir, (reads) => reads.readTag(owners[0] ?? ''))
  expect(tag).toMatchObject({ findings: count(owners[0] ?? ''), high: count(owners[0] ?? '') })
  expect(bench.known()).toEqual(await bench.fresh())
  const matched = await Promise.all(bench.known().tags.map(({ owner }) => bench.matched(owner)))
  expect(visibleRows(bench.known())).toEqual(matched.flat().sort())

  await bench.publish({ 'T-1': null })
  await bench.judge()
  for (const kind of ['gone', 'goneFixable', 'fixesGone'] as const) expect(counted(kind)).toEqual(expected)
  expect(bench.known()).toEqual(await bench.fresh())
})

longTest('a finding that is gone says why: by its record, by VEX, or by another SBOM', async () => {
  const bench = await openFindingsBench({}, onTestFinished, 'warn')
  const { dir, sandbox } = bench
  const [owner = ''] = sandbox.service.ids('tags')
  const record = (fixed: string | null, more: object = {}) => ({ ...affecting('npm', 'why', fixed), ...more })
  const write = (kind: 'sbom' | 'vex', content: string) => sandbox.service.writeArtifact('tag', owner, kind, content)
  const lists = (version: string) => write('sbom', sbomOf('app', `pkg:npm/why@${version}`))
  const judged = async (records: Readonly<Record<string, object | null>>) => {
    await bench.crawl()
    await bench.publish(records)
    await bench.judge()
    return log(dir).at(-1)
  }
  lists('1.0.0')
  await judged({})
  const unread = record('not a version')
  const changes = [
    ['removed', null],
    ['withdrawn', record(null, { withdrawn: '2026-05-01T00:00:00Z' })],
    ['cleared', record('0.9.0')],
    ['cleared', affecting('npm', 'other', null)],
    ['uncompared', unread],
  ] as const
  for (const [why, changed] of changes) {
    await judged({ 'T-1': record(null) })
    expect(await judged({ 'T-1': changed })).toMatchObject({ cause: 'records', gone: 1 })
    expect(log(dir).at(-1)?.details).toEqual([['gone', 'T-1', 'why', '1.0.0', expect.any(Number), '', why]])
  }
  await judged({ 'T-1': record('2.0.0') })
  write('vex', vexAbout('T-1', [{ '@id': 'pkg:npm/why@1.0.0' }], 'not_affected'))
  expect(await judged({})).toMatchObject({ cause: 'vex', details: [['gone', 'T-1', 'why', '1.0.0', 1, '', 'vex']] })
  write('vex', vexAbout('T-1', [{ '@id': 'pkg:npm/why@1.0.0' }], 'affected', '2026-05-02T00:00:00Z'))
  expect(await judged({})).toMatchObject({ cause: 'vex', found: 1 })
  lists('2.0.0')
  expect(await judged({})).toMatchObject({ cause: 'sbom', details: [['gone', 'T-1', 'why', '1.0.0', 1, '', 'sbom']] })
})

longTest('nothing is read or evaluated again where nothing changed, and only the new SBOM where one did', async () => {
  const bench = await openFindingsBench()
  await bench.crawl()
  await bench.publish({ 'T-1': affecting('npm', 'none-has-this', null) })
  await bench.judge()
  const idle = { read: 0, gone: 0, records: { components: 0, tags: 0 }, last: 0 }
  expect(await bench.judge()).toMatchObject(idle)
  await bench.publish({ 'T-1': affecting('npm', 'nor-this', null) })
  const at = Date.UTC(2026, 4, 3)
  expect(await bench.judge(at)).toMatchObject({ ...idle, records: { records: 1, components: 0 } })
  expect(readFindings(bench.dir, (reads) => reads.readState()?.judgedAt)).toBe(at)
  const { service: edits } = bench.sandbox
  const [first = '', second = ''] = edits.ids('tags')
  edits.rotateArtifact('tag', first, 'sbom')
  edits.remove('tags', second)
  const added = edits.addTag()
  await bench.crawl()
  expect(await bench.judge()).toMatchObject({ read: 2, gone: 1 })
  const { tags, unused } = bench.known()
  expect(tags.map(({ owner }) => owner).sort()).toEqual(edits.ids('tags').sort())
  expect([tags.some(({ owner }) => owner === added), unused]).toEqual([true, 0])
  expect(bench.known()).toEqual(await bench.fresh())
})

longTest('a catalog that is replaced while the tags are judged makes none of them unread', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const [tag = ''] = sandbox.service.ids('tags')
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const before = readFindings(dir, (reads) => reads.readTag(tag))
  const next = mkdtempSync(join(tmpdir(), 'patchmirror-replaced-'))
  onTestFinished(() => rmSync(next, { recursive: true }))
  for (const copied of [next, null]) {
    sandbox.service.rotateArtifact('tag', tag, 'sbom')
    await bench.crawl()
    if (copied !== null) cpSync(dir, copied, { recursive: true })
  }
  const listed = openShortReads(next)
  const replaced = openShortReads(dir)
  if (listed === null || replaced === null) throw new Error('no database')
  const db = openFindings(dir, () => undefined)
  const views = createViewsInUse(dir, null, null)
  onTestFinished(() => [listed, replaced, db, views].forEach((one) => one.close()))
  let from = listed
  const during: DuringReads = (work) => {
    const read = from
    from = replaced
    return read.during(() => work(read.reads, read.vex))
  }
  const store = createFindingsStore(db)
  const now = Date.now()
  const catalog = listed.reads.snapshots.readSnapshot('catalog')?.id ?? ''
  const followed = { store, during, catalog, now }
  const rules = createVexRules(followed)
  const age = { isBack: false }
  const input = { ...followed, age, views: views.current(), generation: 'a', rules, isPatched: () => false }
  await expect(followTags(input)).rejects.toMatchObject({ code: 'locked' })
  expect(readFindings(dir, (reads) => reads.readTag(tag))).toEqual(before)
  await bench.judge()
  expect(bench.known()).toEqual(await bench.fresh())
})

longTest('a tag is named by its id, or by a name that no other tag has', async () => {
  const bench = await openFindingsBench()
  const { service } = bench.sandbox
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const ask = (tag: string) =>
    readFindings(bench.dir, (reads) =>
      listTags(reads, { query: new URLSearchParams({ tag }), now: 0, idsNamed: () => [] }),
    )
  const [first, second] = bench.known().tags
  if (first === undefined || second === undefined) throw new Error('no tags')
  for (const named of [first.owner, first.name]) expect(ask(named).tags).toMatchObject([{ id: first.owner }])
  expect(() => ask('nothing')).toThrow('no tag of this id, name, digest or reference')
  const { id: _, ...fields } = service.read('tags', first.owner)
  service.change('tags', second.owner, fields)
  await bench.crawl()
  await bench.judge()
  expect(() => ask(first.name)).toThrow('several tags are named so')
})

longTest('a mirror below an air gap judges what it imported as the mirror above does', async () => {
  const above = await openFindingsBench()
  const gap = below()
  const cross = async () => {
    const { files } = await carry(above.dir, folder())
    await gap.take(files)
    const vendors = derivedVendors(gap.config.views)
    await performTask({ dataDir: gap.dir, kind: 'osv', vendors, rebuild: false })
    await above.judge()
    const judged = await performFindings({ dataDir: gap.dir, served: null, keepDays: 30 })
    expect(readKnown(gap.dir)).toEqual(above.known())
    return judged
  }
  await above.crawl()
  await above.publish({})
  expect(await cross()).toMatchObject({ read: 4, last: 0 })
  const [one] = componentsOf(gap.dir)
  if (one === undefined) throw new Error('no component')
  await above.publish({ 'T-1': affecting(one.ecosystem, one.name, null) })
  above.sandbox.service.rotateArtifact('tag', one.owner, 'sbom')
  await above.crawl()
  expect(await cross()).toMatchObject({ read: 1, records: { records: 1 } })
  const changes = (dir: string) => log(dir).map(({ at: _, ...change }) => change)
  expect(changes(gap.dir).length).toBeGreaterThan(0)
  expect(changes(gap.dir)).toEqual(changes(above.dir))
})

longTest('a database that is damaged, or of another version, begins again without announcing anything', async () => {
  const bench = await openFindingsBench()
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const before = bench.known()
  const path = join(bench.dir, 'derived', 'findings.db')
  writeFileSync(path, 'no database'.repeat(1000))
  expect(() => bench.known()).toThrow('there are no findings')
  expect(await bench.judge()).toMatchObject({ reset: 'it is damaged', read: 4, last: 0 })
  expect(bench.known()).toEqual(before)
})

longTest(
  'a byte that another program changed is found by no check of SQLite, and begins the findings again',
  async () => {
    const bench = await openFindingsBench()
    await bench.crawl()
    await bench.publish({})
    await bench.judge()
    await bench.judge()
    expect(inspectOthers(bench.dir)).toMatchObject([{ faults: [] }])
    const before = bench.known()
    const path = join(bench.dir, 'derived', 'findings.db')
    const bytes = readFileSync(path)
    const at = bytes.indexOf('pkg:')
    writeFileSync(path, bytes.fill('q', at, at + 1))
    const db = new Database(path, { readonly: true })
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    db.close()
    expect(inspectOthers(bench.dir)).toMatchObject([{ faults: ['its bytes are not those that were written'] }])
    expect(await bench.judge()).toMatchObject({ reset: 'it is damaged', read: 4 })
    expect(bench.known()).toEqual(before)
    expect(inspectOthers(bench.dir)).toMatchObject([{ faults: [] }])
  },
)

longTest('the pages and feeds name what changed, and the page of a tag its findings', async () => {
  const bench = await openFindingsBench()
  const { dir, config } = bench
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const [one] = componentsOf(dir)
  if (one === undefined) throw new Error('no component')
  await bench.publish({ 'T-1': affecting(one.ecosystem, one.name, null) })
  await bench.judge()
  await bench.publish({ 'T-1': affecting(one.ecosystem, one.name, '99999.0', 'CRITICAL') })
  await bench.judge()
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  onTestFinished(() => reads.close())
  const makerOf = (settings: typeof config) =>
    createPageMaker({ config: settings, version: 'test', style: 's.css', script: 's.js', icon: 'i.svg' }, () => reads)
  const textOf = (page: string, query = '', make = makerOf(config), expected = 200): string => {
    const now = Date.now() + 60_000 // upstream's dates may be a second ahead, and nothing is old by these
    const asked = { page, query, signedIn: true, status: null, now, served: null }
    const made = make({ ...asked, problem: null, base: '', origin: 'http://localhost' })
    const { body, status } = made
    expect([page, status]).toEqual([page, expected])
    return Buffer.from(body).toString()
  }
  const [row] = log(dir)
    .filter(({ owner }) => owner === one.owner)
    .slice(-1)
  const words = row?.fixes === 1 ? '1 finding got a fix' : `${row?.fixes} findings got a fix`
  const listed = textOf('tag-changes')
  expect(listed).toContain(words)
  const table = textOf('images', 'sort=fix')
  const [, first = ''] = /<tbody.*?<tr(.*?)<\/tr>/s.exec(table) ?? []
  expect(first).toContain(`id=${encodeURIComponent(one.owner)}`)
  expect(first).toMatch(/data-label="With a fix">.*?<bdi>[1-9]/)
  const ofOne = textOf('tag', `id=${encodeURIComponent(one.owner)}`)
  for (const whose of ['the service describes it: counts', 'Findings of this mirror']) expect(ofOne).toContain(whose)
  const items = atomEntries(textOf('tag-changes.atom'))
  expect(items.map(({ title }) => title)).toContain(`${row?.name}: ${words}`)
  expect(items[0]?.content).toContain(`got a fix: T-1 in ${one.name}`)
  expect(new Set(items.map(({ id }) => id)).size).toBe(log(dir).length)
  const judgedAt = readFindings(dir, (from) => from.readState()?.judgedAt) ?? 0
  const none = textOf('tag-changes.atom', 'before=1')
  expect(none).not.toContain('<entry>')
  expect(none).not.toContain('<subtitle>')
  expect(none).toContain(`<updated>${new Date(judgedAt).toISOString()}</updated>`)
  const tag = textOf('tag', `id=${encodeURIComponent(one.owner)}`)
  const numbers = [...tag.matchAll(/<dt><bdi>(critical|high)<\/bdi>.*?<bdi>(\d+)<\/bdi>/g)].map(([, name, text]) => [
    name,
    text,
  ])
  expect(numbers).toEqual([
    ['critical', String(row?.fixes)],
    ['high', '0'],
  ])
  expect(tag).toContain(words)

  const maxAgeHours = 1e-9
  for (const source of ['osv', 'catalog'] as const) {
    const old = makerOf({ ...config, [source]: { ...config[source], maxAgeHours, staleAction: 'refuse' } })
    for (const page of ['tag-changes', 'tag-changes.atom'])
      expect(textOf(page, '', old, 503)).toContain(`older than sync.maxAgeHours`)
  }
  const old = makerOf({ ...config, osv: { ...config.osv, maxAgeHours, staleAction: 'refuse' } })
  const without = textOf('tag', `id=${encodeURIComponent(one.owner)}`, old)
  expect(without).toContain('older than sync.maxAgeHours')
  expect(without).not.toContain(words)
  for (const [setting, off] of [
    ['findings', { ...config, match: { ...config.match, tags: false } }],
    ['query', { ...config, views: { ...config.views, query: false } }],
  ] as const) {
    for (const page of ['tag-changes', 'tag-changes.atom'])
      expect(textOf(page, '', makerOf(off), 404)).toContain(`judges no tags: views.serve has no ${setting}`)
    expect(textOf('tag', `id=${encodeURIComponent(one.owner)}`, makerOf(off))).not.toContain(words)
  }
  expect(tag).not.toContain('is not judged')
  expect(listed).toContain('4 of 4 tags are judged')
  const findings = openFindings(dir, () => undefined)
  findings.exec('UPDATE state SET began_at = NULL') // as while the first judgement is under way
  findings.close()
  expect(textOf('tag-changes')).toContain('the first judgement is in progress, 4 tags so far')
  expect(textOf('tag-changes.atom')).toMatch(/<subtitle>The tags are not all judged yet: the first judgement is in/)
  removeFindings(dir)
  expect(textOf('tag', `id=${encodeURIComponent(one.owner)}`)).toContain(asSentence(NOT_JUDGED))
})
