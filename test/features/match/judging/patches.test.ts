import { expect, onTestFinished } from 'vitest'
import { isFixable, joinPatches } from '../../../../src/features/match/judging/patches.ts'
import type { MatchFinding } from '../../../../src/features/match/judging/finding.ts'
import { SANDBOX_KEYS } from '../../../sandbox/service/credentials.ts'
import { generateTickets } from '../../../sandbox/service/data/tickets.ts'
import { type ShapeName, SHAPE_NAMES, shapeOf } from '../../../sandbox/service/shapes/shape.ts'
import type { EntryQuery } from '../../../../src/store/catalog/list-query.ts'
import { openShortReads } from '../../../../src/store/reads.ts'
import { createBench } from '../../../support/mirror.ts'
import { longTest, test } from '../../../support/tables.ts'

const SEED = 11

const ECOSYSTEMS: Readonly<Record<string, readonly [ecosystem: string, type: string]>> = {
  alpine: ['Alpine:v3.20', 'apk/alpine'],
  debian: ['Debian:12', 'deb/debian'],
  ubuntu: ['Ubuntu:22.04:LTS', 'deb/ubuntu'],
  pypi: ['PyPI', 'pypi'],
  npm: ['npm', 'npm'],
  maven: ['Maven', 'maven'],
}

function finding(cves: Partial<MatchFinding>, ecosystem: string, purl: string): MatchFinding {
  return {
    id: 'X-1',
    aliases: [],
    upstream: [],
    summary: '',
    modified: null,
    severity: { level: null, word: null, scoreLevel: null, score: null, stated: [] },
    source: null,
    component: {
      name: 'x',
      version: '1',
      purl,
      refs: [],
      refCount: 0,
      release: null,
      sourcePackage: null,
      allReleases: false,
      recordsOf: null,
      binaryNameOnly: false,
    },
    ecosystems: [ecosystem],
    fixed: [],
    patches: [],
    patchCount: 0,
    ...cves,
  }
}

/** Mirrors a service of this shape, and joins findings with its list of patches. */
async function mirrored(shape: ShapeName) {
  const service = { images: 0, tags: 0, packages: 0, avrs: 0, subscriptions: 0, tickets: 60, shape }
  const bench = await createBench({
    sandbox: { seed: SEED, records: 1, service },
    env: { PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly },
  })
  expect(await bench.run('catalog')).toMatchObject({ state: 'complete' })
  const opened = openShortReads(bench.dir)
  onTestFinished(async () => {
    opened?.close()
    await bench.close()
  })
  if (opened === null) throw new Error('no database')
  const { ids } = shapeOf(shape).records
  const tickets = generateTickets({ seed: SEED, records: 1, ids }, 60).map(({ listed }) => listed)
  return {
    tickets,
    join: (...all: MatchFinding[]) => joinPatches(all, opened.reads, () => undefined),
    catalog: opened.reads.catalog,
  }
}

async function joinsAll(shape: ShapeName): Promise<void> {
  const { tickets, join } = await mirrored(shape)
  const about = tickets.map(({ cve_id: cve, ecosystem, package_src_name: name }) => {
    const [recorded = '', type = ''] = ECOSYSTEMS[ecosystem] ?? []
    const plain = name.replace(':', '/').replace('@', '%40')
    return finding({ aliases: [cve] }, recorded, `pkg:${type}/${plain}@1`)
  })
  const { findings, patches } = join(...about)
  expect(patches).toEqual({ notApplied: null, entries: 60, partial: null })
  for (const [at, { ticket_id: ticket, cve_id: cve, ticket_status: status, version }] of tickets.entries()) {
    const found = findings[at]
    expect(found?.patches).toContainEqual(expect.objectContaining({ ticket, cve, status, version }))
    if (found?.patches.length === 1) expect(isFixable(found)).toBe(status === 'done')
  }
  expect(findings.filter((one) => isFixable(one)).length).toBeGreaterThan(3)
}

test('a patch is joined with the findings about its CVE, ecosystem and package', () => joinsAll('wire'))

for (const shape of SHAPE_NAMES.filter((one) => one !== 'wire'))
  longTest(`a patch is joined however the service writes its list: ${shape}`, () => joinsAll(shape))

test('a patch of another package, ecosystem or vulnerability is not joined', async () => {
  const { tickets, join } = await mirrored('wire')
  const [{ cve_id: cve, package_src_name: name } = { cve_id: '', package_src_name: '' }] = tickets.filter(
    ({ ecosystem }) => ecosystem === 'debian',
  )
  const purl = `pkg:deb/debian/${name}@1`
  const { findings } = join(
    finding({ upstream: [cve] }, 'Root:Debian:12', purl),
    finding({ id: 'CVE-0-0' }, 'Debian:12', purl),
    finding({ id: cve }, 'Debian:12', `${purl}x`.replace(name, `${name}x`)),
    finding({ id: cve }, 'npm', `pkg:npm/${name}@1`),
    finding({ id: cve }, 'Debian:12', 'no purl'),
  )
  expect(findings.map(({ patches }) => patches.length > 0)).toEqual([true, false, false, false, false])
})

/** Joins findings with the list of a mirror that has these entries in place of its own. */
async function joinedWith(
  entries: readonly { readonly cve: string; readonly body: string }[],
  ...findings: MatchFinding[]
) {
  const { catalog } = await mirrored('wire')
  const rows = entries.map(({ cve, body }, ordinal) => ({
    cve,
    ordinal,
    id: `t${ordinal}`,
    value: null,
    body: Buffer.from(body),
    sha: Buffer.alloc(16),
  }))
  const listEntries = ({ where, limit }: EntryQuery) =>
    rows.filter(({ cve }) => where[0]?.values.includes(cve)).slice(0, limit)
  let checks = 0
  const reads = { catalog: { ...catalog, listEntries } }
  const joined = joinPatches(findings, reads, () => (checks += 1))
  const counts = joined.findings.map(({ patchCount }) => patchCount)
  return { patches: joined.findings.map(({ patches }) => patches), counts, checks }
}

function entryOf(cve: string, name: string, more: object = {}) {
  const item = { cve_id: cve, ecosystem: 'npm', package_src_name: name, ticket_status: 'done' }
  return { cve, body: JSON.stringify({ ...item, ...more }) }
}

test('an entry that is no object or of other types is passed over, and long texts are cut', async () => {
  const bodies = ['', '{', 'null', '[]', '"x"', '1', '{}', '{"cve_id":{"a":1}}']
  const entries = bodies.map((body) => ({ cve: 'CVE-1-1', body }))
  const last = entryOf('CVE-1-1', 'x', { version: 'v'.repeat(5_000), os_distro_major: 12 })
  const { patches } = await joinedWith([...entries, last], finding({ id: 'CVE-1-1' }, 'npm', 'pkg:npm/x@1'))
  const patch = { ticket: 't8', cve: 'CVE-1-1', status: 'done', release: '12' }
  expect(patches).toEqual([[{ ...patch, version: 'v'.repeat(1_000) }]])
})

test('an entry for another release of a distribution is no patch of an image of this one', async () => {
  const of = (release: string) => ({ ...entryOf('CVE-1-1', 'x', { ecosystem: 'debian', os_distro_major: release }) })
  const inRelease = (name: string | null) => {
    const one = finding({ id: 'CVE-1-1' }, 'Debian:12', 'pkg:deb/debian/x@1')
    return { ...one, component: { ...one.component, release: name === null ? null : { name, from: 'purl' as const } } }
  }
  const entries = ['11', '12', 'bookworm', '', 'unknown'].map(of)
  const { patches, counts } = await joinedWith(entries, ...['Debian:12', 'Debian:13', null].map(inRelease))
  expect(patches.map((ones) => ones.map(({ release }) => release))).toEqual([
    ['12', 'bookworm', '', 'unknown'],
    ['', 'unknown'],
    ['11', '12', 'bookworm', '', 'unknown'],
  ])
  expect(counts).toEqual([4, 2, 5])
})

longTest(
  'very many entries about one CVE hide none about another, and are compared with each finding once',
  async () => {
    const many = Array.from({ length: 20_001 }, (_, at) => entryOf('CVE-1-1', at < 500 ? 'x' : 'y'))
    const { patches, checks } = await joinedWith(
      [...many, entryOf('CVE-2-2', 'x')],
      finding({ id: 'G-1', aliases: ['CVE-1-1'] }, 'npm', 'pkg:npm/x@1'),
      ...Array.from({ length: 500 }, (_, at) => finding({ id: 'G-1', aliases: ['CVE-1-1'] }, 'npm', `pkg:npm/x@${at}`)),
      finding({ id: 'CVE-2-2' }, 'npm', 'pkg:npm/x@1'),
    )
    expect(new Set(patches.slice(0, -1).map(({ length }) => length))).toEqual(new Set([100]))
    expect(patches.at(-1)).toMatchObject([{ ticket: 't20001', cve: 'CVE-2-2' }])
    expect(checks).toBeGreaterThan(1_000)
    expect(checks).toBeLessThan(5_000)
  },
)

test('more patches of a finding than are listed are counted, and those that are done are listed before others', async () => {
  const open = { ticket_status: 'open' }
  const of = (cve: string, done: readonly number[]) =>
    Array.from({ length: 250 }, (_, at) => entryOf(cve, 'x', done.includes(at) ? {} : open))
  const all = Array.from({ length: 250 }, (_, at) => at)
  const { patches, counts } = await joinedWith(
    [...of('CVE-1-1', [3, 120, 249]), ...of('CVE-2-2', all), entryOf('CVE-3-3', 'x')],
    finding({ id: 'CVE-1-1' }, 'npm', 'pkg:npm/x@1'),
    finding({ id: 'CVE-2-2' }, 'npm', 'pkg:npm/x@1'),
    finding({ id: 'CVE-2-2', aliases: ['CVE-1-1', 'CVE-3-3'] }, 'npm', 'pkg:npm/x@1'),
    finding({ id: 'CVE-4-4' }, 'npm', 'pkg:npm/x@1'),
  )
  expect(counts).toEqual([250, 250, 501, 0])
  const kept = patches.map((ones) => ones.map(({ ticket }) => ticket))
  expect(kept[0]).toEqual([...all.slice(0, 98), 120, 249].map((at) => `t${at}`))
  expect(kept[1]).toEqual(all.slice(0, 100).map((at) => `t${250 + at}`))
  expect(patches[2]?.every(({ status }) => status === 'done')).toBe(true)
  expect(kept.map(({ length }) => length)).toEqual([100, 100, 100, 0])
})
