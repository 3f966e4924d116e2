import { emptiedPart } from '../../../src/sync/feeds/documents.ts'
import { join } from 'node:path'
import { expect } from 'vitest'
import { connect } from '../../../src/store/database/sqlite.ts'
import type { Bench } from '../../support/mirror.ts'
import { longTest, test } from '../../support/tables.ts'
import { MATRIX, PATCH_FEED, bench, expectSound, tamper, verify } from '../fixtures.ts'

const RELEASES = ['3.18', '3.19', '3.20']
type Fixes = Record<string, string[]>

/** A feed of patches: forty packages of three releases, each with one fix that names two vulnerabilities. */
function feedOf(fixesOf: (release: string, at: number) => Fixes | null): string {
  const alpine = RELEASES.flatMap((distroversion) => {
    const packages = Array.from({ length: 40 }, (_, at) => fixesOf(distroversion, at))
    const listed = packages.flatMap((secfixes, at) =>
      secfixes === null ? [] : [{ pkg: { name: `p${at}`, secfixes } }],
    )
    return listed.length === 0 ? [] : [{ distroversion, archs: ['x86_64'], packages: listed }]
  })
  return JSON.stringify({ alpine, debian: [] })
}

const cves = (at: number): string[] => [`CVE-2026-${1000 + at}`, `CVE-2026-${2000 + at}`]
const FULL = feedOf((_, at) => ({ '8.1-r7': cves(at) }))

function serve({ sandbox }: Bench, body: string): void {
  sandbox.faults.clear()
  sandbox.faults.set(PATCH_FEED, { kind: 'body', type: 'application/json', body })
}

async function synced(): Promise<Bench> {
  const made = await bench({ sandbox: { records: 5, large: 0 } })
  serve(made, FULL)
  expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
  return made
}

longTest('a feed of patches whose fixes are lowered is refused, and published when it is approved', async () => {
  const made = await synced()
  serve(
    made,
    feedOf((_, at) => ({ [at < 15 ? '8.1-r6' : '8.1-r7']: cves(at) })),
  )
  const refused = await made.run('feeds')
  expect(refused).toMatchObject({ state: 'quarantined', facts: { doubts: 90 } })
  expect(refused.message).toContain('90 of 240 entries have a lower fixed version, or would be removed (entriesLost')
  expect((refused.facts['doubtfulIds'] as string[])[0]).toContain('fix lowered from 8.1-r7 to 8.1-r6')
  expect(await made.run('feeds')).toMatchObject({ state: 'quarantined', facts: { quarantine: refused.id } })
  const approved = made.store.quarantine.readQuarantine(refused.id)
  if (approved === null) throw new Error('nothing is in quarantine')
  const approval = await made.run('feeds', { kind: 'approve', approved })
  expect(approval.message).toContain('published, as approved: 90 of 240 entries')
  const { id = 0 } = made.store.changes.readLatestLogged('feeds') ?? {}
  expect(made.store.changes.readDoubts(id)).toMatchObject({ run: approval.id, approved: ['entriesLost'] })
  expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
})

test('a feed of patches in a form whose entries are not read is reported as not compared, each time it changes', async () => {
  const made = await bench({ sandbox: { records: 5, large: 0 } })
  const rows = (fix: string): string =>
    JSON.stringify({ data: [{ ecosystem: 'alpine', package: 'a', patch: `CVE-2026-1 in ${fix}` }] })
  serve(made, rows('2'))
  expect((await made.run('feeds')).facts).not.toHaveProperty('notCompared')
  serve(made, rows('1'))
  expect(await made.run('feeds')).toMatchObject({ state: 'complete', facts: { notCompared: 1 } })
})

test('a feed of patches that adds, raises and corrects a few is believed', async () => {
  const made = await synced()
  serve(
    made,
    feedOf((_, at) => (at < 5 ? { '8.1-r6': cves(at) } : { '8.1-r9': [...cves(at), 'CVE-2026-9999'] })),
  )
  const report = await made.run('feeds')
  expect(report.state).toBe('quarantined') // five packages in three releases are thirty entries
  serve(
    made,
    feedOf((_, at) => (at < 3 ? { '8.1-r6': cves(at) } : { '8.1-r9': [...cves(at), 'CVE-2026-9999'] })),
  )
  expect(await made.run('feeds')).toMatchObject({ state: 'complete', facts: { doubtsBelowLimits: 18 } })
})

longTest(
  'a run says against which state it was judged, in the window and on a mirror that is younger than it',
  async () => {
    const made = await synced()
    const age = (days: number): void => {
      const db = connect(join(made.dir, 'mirror.db'))
      db.prepare('UPDATE change_log SET published_at = published_at - ?').run(days * 86_400_000)
      db.close()
    }
    const against = async (fixed: string): Promise<unknown> => {
      serve(
        made,
        feedOf((_, at) => ({ [at < 1 ? fixed : '8.1-r7']: cves(at) })),
      )
      return (await made.run('feeds')).facts['judgedAgainst']
    }
    expect(await against('8.1-r6')).toMatch(
      /^the state of \d{4}-\d\d-\d\d \d\d:\d\d UTC, the first that is known here$/,
    )
    age(9)
    const published = made.store.changes.readNextLogged('feeds', 0)?.publishedAt ?? 0
    const day = new Date(published).toISOString().slice(0, 10)
    const said = await against('8.1-r5')
    expect(said).toMatch(/^the state of \d{4}-\d\d-\d\d \d\d:\d\d UTC$/)
    expect(String(said)).toContain(day)
  },
)

longTest('an old release that ends is reported, and one that is the newest is refused', async () => {
  const made = await synced()
  serve(
    made,
    feedOf((release, at) => (release === '3.18' ? null : { '8.1-r7': cves(at) })),
  )
  const env = { PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20' }
  const report = await made.runWith(env, 'feeds')
  expect(report).toMatchObject({ state: 'complete', facts: { doubts: 80 } })
  expect(report.message).toContain(
    'published, but doubtful: 80 of 240 entries were removed with their release (entriesEnded',
  )
  serve(
    made,
    feedOf((release, at) => (release === '3.19' ? { '8.1-r7': cves(at) } : null)),
  )
  expect(await made.runWith(env, 'feeds')).toMatchObject({ state: 'quarantined' })
})

longTest('small steps of a feed of patches are refused together', async () => {
  const made = await synced()
  const states: string[] = []
  for (let step = 1; step <= 8; step++) {
    serve(
      made,
      feedOf((release, at) => (release === '3.20' && at < step * 3 ? { '8.1-r6': cves(at) } : { '8.1-r7': cves(at) })),
    )
    states.push((await made.run('feeds')).state)
  }
  expect(states.slice(0, 3)).toEqual(['complete', 'complete', 'complete'])
  expect(states.at(-1)).toBe('quarantined')
})

const CUT = 'UPDATE document SET body = substr(body, 1, 40) WHERE path = ?'

test('a damaged feed is fetched again by any run, and one that changed meanwhile is published as not compared', async () => {
  const made = await synced()
  for (const request of [{}, { full: true }, { kind: 'repair', full: true } as const]) {
    tamper(made.dir, CUT, PATCH_FEED)
    expect(await verify(made.dir)).toMatchObject({ damagedDocuments: [PATCH_FEED] })
    const report = await made.run('feeds', request)
    expect(report).toMatchObject({ state: 'complete' })
    expect(report.message).toMatch(/^\d documents? changed$/)
    await expectSound(made.dir)
  }
  tamper(made.dir, CUT, PATCH_FEED)
  serve(
    made,
    feedOf((_, at) => ({ '8.1-r9': cves(at) })),
  )
  const report = await made.run('feeds', { kind: 'repair', full: true })
  expect(report).toMatchObject({ state: 'complete', facts: { notCompared: 1, doubts: 1 } })
  expect(report.message).toContain(
    'published, but doubtful: 1 document could not be compared with what is stored (notCompared)',
  )
  expect(report.facts['doubtfulIds']).toEqual([
    `${PATCH_FEED}: not compared: the stored bytes that it replaces cannot be read`,
  ])
  await expectSound(made.dir)
})

test('a feed of which a part is empty at once is refused, however small that is', async () => {
  const made = await bench({ sandbox: { records: 5, large: 0 } })
  const part = (count: number): object[] => [
    {
      distroversion: '1',
      packages: Array.from({ length: count }, (_, at) => ({ pkg: { name: `p${at}`, secfixes: {} } })),
    },
  ]
  const matrix = {
    ecosystems: { alpine: [{ major_version: '3.18' }], debian: [{ major_version: '12' }] },
    platforms: [1],
  }
  const say = (patches: object, supported: object = matrix): void => {
    serve(made, JSON.stringify(patches))
    made.sandbox.faults.set(MATRIX, { kind: 'body', type: 'application/json', body: JSON.stringify(supported) })
  }
  const small = { alpine: part(50), pypi: part(2) }
  say(small)
  expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
  for (const emptied of [{ ...small, pypi: [] }, { ...small, pypi: null }, { alpine: small.alpine }]) {
    say(emptied)
    const report = await made.run('feeds')
    expect([emptied, report.state]).toEqual([emptied, 'quarantined'])
    expect(report.message).toContain('patch_feed: it would empty pypi')
  }
  say(small, { ...matrix, ecosystems: { ...matrix.ecosystems, alpine: [] } })
  expect((await made.run('feeds')).message).toContain('sys_matrix: it would empty ecosystems.alpine')
  for (const other of [
    { data: small },
    { alpine: small.alpine, PyPI: small.pypi },
    { ...small, pypi: part(1), npm: [] },
    { ...small, warnings: ['curl: no release'] },
    { ...small, warnings: [] },
    small,
  ]) {
    say(other)
    expect([other, (await made.run('feeds')).state]).toEqual([other, 'complete'])
  }
})

test.each([
  ['a note', { alpine: [1], warnings: ['late'] }, { warnings: [] }, null],
  ['a release', { alpine: { '3.15': [1], '3.18': [2] } }, { alpine: { '3.15': [], '3.18': [2] } }, null],
  ['a package', { curl: { 'CVE-1': '1' }, npm: { 'CVE-2': '2' }, zlib: {} }, { npm: {} }, null],
  ['an ecosystem', { data: { alpine: [1], npm: [2] }, meta: [3] }, { data: { alpine: [1], npm: [] } }, 'data.npm'],
  [
    'each ecosystem',
    { ecosystems: { alpine: [1] }, platforms: [1] },
    { ecosystems: {}, platforms: [], at: 1 },
    'ecosystems',
  ],
  ['an ecosystem of another name', { alpine: [{ v: 1 }], rocky: [{ v: 9 }] }, { rocky: [] }, 'rocky'],
  ['rows about the feed', { alpine: [{ v: 1 }], notices: [{ text: 'x' }] }, { notices: [] }, null],
  ['the platforms', { ecosystems: { alpine: [1] }, platforms: [1] }, { platforms: [] }, 'platforms'],
  ['what is around all', { data: [1], meta: { page: 1 } }, { data: [] }, 'data'],
  [
    'the list of ecosystems',
    { package_ecosystems: ['npm'], platforms: [1] },
    { package_ecosystems: [] },
    'package_ecosystems',
  ],
])('%s that is empty at once is a part or none', (_, before, now, part) => {
  expect(emptiedPart(before, { ...before, ...now })).toBe(part)
})

test('a small feed of which nothing but null or a date is left is refused', async () => {
  const made = await bench({ sandbox: { records: 5, large: 0 } })
  const say = (value: object): void => {
    made.sandbox.faults.clear()
    made.sandbox.faults.set(MATRIX, { kind: 'body', type: 'application/json', body: JSON.stringify(value) })
  }
  say({ ecosystems: { alpine: ['3.18', '3.19'] }, platforms: [{ os: 'linux' }] })
  expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
  for (const left of [
    { ecosystems: null },
    { data: null },
    { ecosystems: {}, platforms: [], generated: '2026-01-01' },
  ]) {
    say(left)
    expect([left, (await made.run('feeds')).state]).toEqual([left, 'quarantined'])
  }
})
