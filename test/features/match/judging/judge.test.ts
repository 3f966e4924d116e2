import { expect, test } from 'vitest'
import { createFairQueue } from '../../../../src/base/pacing.ts'
import { evaluate } from '../../../../src/features/scanners/routes/query-evaluate.ts'
import { createByteLimit, judgeComponents } from '../../../../src/features/match/judging/judge.ts'
import type { JudgeSource } from '../../../../src/features/match/judging/package-source.ts'
import type { SbomComponent } from '../../../../src/documents/sboms/sbom.ts'

interface Range {
  readonly type: string
  readonly events: readonly object[]
}

function record(id: string, packages: readonly (readonly [string, string, ...Range[]])[], more = {}): object {
  const affected = packages.map(([ecosystem, name, ...ranges]) => ({
    package: { ecosystem, name },
    ranges,
  }))
  return { id, modified: '2026-01-01T00:00:00Z', affected, ...more }
}

function range(type: string, ...versions: readonly string[]): Range {
  const events = versions.map((version, at) => (at % 2 === 0 ? { introduced: version } : { fixed: version }))
  return { type, events }
}

const RECORDS = [
  record('A-1', [['npm', 'a', range('SEMVER', '1.0.0', '1.5.0', '2.0.0', '2.3.0')]], {
    aliases: ['CVE-1', 7],
    summary: 'One',
    database_specific: { severity: 'LOW' },
  }),
  record('A-2', [['npm', 'a', range('SEMVER', '0')]], { database_specific: { severity: 'CRITICAL' } }),
  record('A-3', [['npm', 'a', range('SEMVER', '0', '1.0.0')]]),
  record('D-1', [
    ['Debian:11', 'd', range('ECOSYSTEM', '0', '1.0-2')],
    ['Debian:12', 'd', range('ECOSYSTEM', '0', '1.0-9')],
    ['Debian:13', 'd', range('ECOSYSTEM', '0', '0.5')],
    ['Debian:12', 'other', range('ECOSYSTEM', '0', '9')],
  ]),
  {
    id: 'S-1',
    affected: ['11', '12', '13'].map((release, at) => ({
      package: { ecosystem: `Debian:${release}`, name: 's' },
      ranges: [range('ECOSYSTEM', '0')],
      ecosystem_specific: { urgency: ['high', 'unimportant', 'not yet assigned'][at] },
    })),
  },
  record('E-1', [['Debian:12', 'e', range('ECOSYSTEM', '0', '1:1.0-1')]]),
  record('P-1', [['PyPI', 'some.Name', range('ECOSYSTEM', '0', '3.0')]]),
]

/** Looks in every record for each package, as an index without any knowledge would. */
const SOURCE: JudgeSource = {
  listCandidates: (_ecosystem, _name, after, limit) =>
    RECORDS.map((one) => ({ id: (one as { id: string }).id }))
      .filter(({ id }) => id > after)
      .slice(0, limit),
  readRecord(_ecosystem, id) {
    const found = RECORDS.find((one) => (one as { id: string }).id === id)
    return found === undefined ? null : { content: Buffer.from(JSON.stringify(found)), prefixes: [] }
  },
  listPackageRecords: (ecosystem, names) => ({
    records: new Map(
      names.map((name) => [
        name,
        SOURCE.listCandidates(ecosystem, name, '', 100).map(({ id }) => ({
          id,
          read: () => SOURCE.readRecord(ecosystem, id),
        })),
      ]),
    ),
    complete: names.length,
  }),
  hasEcosystem: (name) => name !== 'RubyGems',
  hasRelease: () => true,
}

const component = (purl: string | null, version = '', ref = '', name = 'x'): SbomComponent => ({
  ref,
  name,
  version,
  purl,
  source: null,
  kind: null,
  type: '',
  licences: '',
})
const judge = (...components: SbomComponent[]) => judgeComponents(components, SOURCE, { check: () => undefined })

test('findings name the fixed versions above the version of the component, the worst first', async () => {
  const { findings, notJudged } = await judge(component('pkg:npm/a@1.2.0', '1.2.0'))
  expect(notJudged).toEqual([])
  expect(findings.map(({ id, fixed, severity }) => [id, fixed, severity.level])).toEqual([
    ['A-2', [], 'critical'],
    ['A-1', ['1.5.0', '2.3.0'], 'low'],
  ])
  expect(findings[1]).toMatchObject({ aliases: ['CVE-1'], summary: 'One', ecosystems: ['npm'] })
})

test('a fix is only that of a range that the version is in', async () => {
  const { findings } = await judge(component('pkg:deb/debian/d@1.0-1?distro=debian-12'))
  expect(findings).toMatchObject([{ id: 'D-1', fixed: ['1.0-9'], ecosystems: ['Debian:12'] }])
})

test('the severity that a record states of each release is that of the release that is meant', async () => {
  const purls = ['11', '12', '13'].map((release) => component(`pkg:deb/debian/s@1?distro=debian-${release}`))
  const { findings } = await judge(...purls)
  expect(findings.map(({ severity }) => severity.level)).toEqual(['high', 'low', null])
})

test('the epoch that a purl has as a qualifier is part of its version, also of the one of the SBOM', async () => {
  const purl = 'pkg:deb/debian/e@1.5-1?arch=amd64&epoch=1'
  const { findings } = await judge(
    component(purl),
    component('pkg:deb/debian/e?epoch=1', '1.5-1'),
    component('pkg:deb/debian/e@0.9-1?epoch=1'),
  )
  expect(findings.map((one) => one.component.version)).toEqual(['1:0.9-1'])
})

test('equal components are judged once and keep all their references', async () => {
  const purl = 'pkg:pypi/Some_name@2.0'
  const { findings, packages } = await judge(
    component(purl, '2.0', 'one'),
    component(purl, '2.0', 'two'),
    component(purl, '2.0', 'one'),
  )
  expect(packages).toBe(1)
  expect(findings).toMatchObject([{ id: 'P-1', component: { refs: ['one', 'two'] } }])
})

test('a component with very many references lists the first, counts all, and can be stopped', async () => {
  const many = Array.from({ length: 50_000 }, (_, at) => component('pkg:npm/a@1.2.0', '', `r${at}`))
  const { findings } = await judge(...many)
  expect(findings[0]?.component).toMatchObject({ refCount: 50_000 })
  expect(findings[0]?.component.refs).toEqual(many.slice(0, 100).map(({ ref }) => ref))
  let checks = 0
  const stop = () => {
    if (++checks === 1000) throw new Error('late')
  }
  await expect(judgeComponents(many, SOURCE, { check: stop })).rejects.toThrow('late')
})

test('an answer with more bytes than it may have is refused', async () => {
  const bytes = (max: number) =>
    judgeComponents([component('pkg:npm/a@1.2.0'), component(null, '1')], SOURCE, {
      check: () => undefined,
      add: createByteLimit(max),
    })
  const { findings, notJudged } = await bytes(2 ** 20)
  const size = Buffer.byteLength(JSON.stringify([findings, notJudged]))
  await expect(bytes(size - 10)).rejects.toThrow(/the answer would be larger than .* split the SBOM/)
})

test('the version of the SBOM counts where the purl has none, and only there', async () => {
  const { findings } = await judge(component('pkg:pypi/some-name', '2.0'))
  expect(findings).toHaveLength(1)
  expect((await judge(component('pkg:pypi/some-name@4.0', '2.0'))).findings).toEqual([])
})

test('every component that cannot be judged is listed with the reason', async () => {
  const { findings, notJudged } = await judge(
    component(null, '1'),
    component('pkg:npm/', '1'),
    component('pkg:npm/a?x', ''),
    component('pkg:gem/a@1'),
    component('pkg:rpm/fedora/bash@4.2?distro=fedora-40'),
    component('pkg:oci/image@sha256%3A1', 'latest'),
    component('pkg:npm/a@workspace%3A1'),
    component('pkg:conan/zlib@1.2.3'), // of which there is no record
    component(`pkg:npm/${'a'.repeat(2000)}@1.0.0`),
  )
  expect(findings).toEqual([])
  expect(notJudged.map(({ code }) => code)).toEqual([
    ...['no_purl', 'bad_purl', 'no_version', 'no_records', 'unknown_ecosystem'],
    ...['unknown_ecosystem', 'version_not_ordered', 'bad_purl'],
  ])
  expect(notJudged.map(({ reason }) => reason)).toEqual(
    expect.arrayContaining([
      'this mirror has no records of the ecosystem RubyGems',
      'OSV has no vulnerability records of Fedora (pkg:rpm/fedora)',
      'workspace:1 is not a version as npm orders them: only records that list exactly this version were found',
    ]),
  )
})

test('a package without a package URL is listed beside a file, or what is described, of the same name', async () => {
  const kinds = [null, 'a file', 'what the SBOM describes']
  const { notJudged, packages } = await judge(...kinds.map((kind) => ({ ...component(null, '1'), kind })))
  expect(notJudged.map(({ code }) => code)).toEqual(['no_purl', 'no_package', 'no_package'])
  expect(packages).toBe(3)
})

test('findings are those of a batch of queries for the same purls', async () => {
  const purls = [
    ...['pkg:npm/a@0.5.0', 'pkg:npm/a@1.2.0', 'pkg:npm/a@2.3.0', 'pkg:npm/b@1.0.0'],
    ...['pkg:deb/debian/d@0.4?arch=arm64', 'pkg:deb/debian/d@1.0-8', 'pkg:deb/debian/d@2'],
    ...['pkg:pypi/SOME.name@2.9', 'pkg:pypi/some-name@3.0', 'pkg:oci/a@1'],
  ]
  const body = Buffer.from(JSON.stringify({ queries: purls.map((purl) => ({ package: { purl } })) }))
  const answer = await evaluate('querybatch', body, {
    source: SOURCE,
    turns: createFairQueue(),
    now: () => 0,
    leftOut: () => null,
    isGone: () => false,
  })
  const { results } = JSON.parse(answer.body.toString()) as {
    results: { vulns?: { id: string }[] }[]
  }
  const expected = purls.map((purl, at) => [purl, (results[at]?.vulns ?? []).map(({ id }) => id)])
  const { findings } = await judge(...purls.map((purl) => component(purl)))
  const found = purls.map((purl) => {
    const own = findings.filter((one) => one.component.purl === purl)
    return [purl, own.map(({ id }) => id).sort()]
  })
  expect(found).toEqual(expected)
  expect(findings.length).toBeGreaterThan(6)
})

test('the work ends when the check throws', async () => {
  const stop = new Error('stop')
  const check = (): void => {
    throw stop
  }
  await expect(judgeComponents([component('pkg:npm/a@1.2.0')], SOURCE, { check })).rejects.toBe(stop)
})
