import { surroundingsOf } from '../../../../src/base/identity/surroundings.ts'
import { describe, expect, test } from 'vitest'
import { judgeComponents } from '../../../../src/features/match/judging/judge.ts'
import type { JudgeSource } from '../../../../src/features/match/judging/package-source.ts'
import { coversAsked, isMeant } from '../../../../src/base/identity/meant.ts'
import type { SbomComponent } from '../../../../src/documents/sboms/sbom.ts'

interface TestRecord {
  readonly id: string
  readonly summary?: string
  readonly affected: readonly object[]
}

/** A record about packages: each with its ranges or versions. */
const about = (id: string, ...affected: [ecosystem: string, name: string, more: object][]): TestRecord => ({
  id,
  affected: affected.map(([ecosystem, name, more]) => ({ package: { ecosystem, name }, ...more })),
})

const below = (fixed: string, type = 'ECOSYSTEM') => ({
  ranges: [{ type, events: [{ introduced: '0' }, { fixed }] }],
})

const FROM_4_1 = [{ introduced: '4.1.0' }, { fixed: '4.1.5' }]

/** Module builds say their stream in the summary, or nowhere. */
const STREAMS: readonly TestRecord[] = [
  {
    ...about('NODE-18', ['AlmaLinux:8', 'nodejs', below('1:18.20.2-1.module_el8.9.0+3764+1')]),
    summary: 'Important: nodejs:18 security update',
  },
  {
    ...about('NODE-20', ['AlmaLinux:8', 'nodejs', below('1:20.12.2-2.module_el8.9.0+3785+2')]),
    summary: 'Important: nodejs:20 and nodejs-devel:20 security, bug fix, and enhancement update',
  },
  about('RUBY', ['Rocky Linux:8', 'ruby', below('2.7.8-139.module+el8.8.0+1243+3')]),
  {
    ...about('PG', ['Rocky Linux:8', 'postgresql', below('13.11-1.module+el8.8.0+1299+5')]),
    summary: 'Important: postgresql security update (RLSA-2023:4527)',
  },
  {
    ...about('DS', ['Rocky Linux:8', '389-ds-base', below('1.4.3.32-2.module+el8.8.0+1271+6')]),
    summary: 'Moderate: 389-ds:1.4 security update; see RLSA-2023:3267.',
  },
  about('PERL', ['Rocky Linux:8', 'perl', below('4:5.26.3-422.el8')]),
]

const RECORDS: readonly TestRecord[] = [
  about('D-11', ['Debian:11', 'openssl', below('1.1.1n-0+deb11u5')]),
  about('D-12', ['Debian:12', 'openssl', below('3.0.11-1~deb12u2')]),
  about('D-13', ['Debian:13', 'openssl', below('3.5.1-1')]),
  about('D-BOTH', ['Debian:12', 'openssl', below('3.0.12-1')], ['Debian:12', 'libssl3', below('3.0.12-1')]),
  about(
    'L-BOTH',
    ['AlmaLinux:9', 'perl', below('4:5.32.1-481.el9')],
    ['AlmaLinux:9', 'perl-Errno', below('1.30-481.el9')],
  ),
  about('L-ONE', ['AlmaLinux:9', 'perl', below('4:5.32.1-482.el9')]),
  about('M-0', ['Mageia', 'curl', below('8-1')]),
  about('M-8', ['Mageia:8', 'curl', below('8-1')]),
  about('R-1', ['Rocky Linux:9', 'perl', below('4:5.32.1-481.el9')]),
  about(
    'R-BOTH',
    ['Rocky Linux:9', 'perl', below('4:5.32.1-482.el9')],
    ['Rocky Linux:9', 'perl-Errno', below('1.30-481.el9')],
  ),
  about('H-1', ['Red Hat:enterprise_linux:7::server', 'bash', below('4.2-2')]),
  about('S-1', ['SUSE:Linux Enterprise Server 15 SP5', 'bind', below('9.16.50-1')]),
  about('C-1', ['ConanCenter', 'zlib', below('1.2.12')]),
  about('C-2', ['ConanCenter', 'mixed', below('1.2.12')]),
  about('C-3', ['ConanCenter', 'mixed', { versions: ['1.0'] }]),
  about('G-1', ['npm', 'commits', { ranges: [{ type: 'GIT', events: [{ introduced: '0' }] }] }]),
  about('B-1', ['npm', 'bounds', below('unknown')]),
  about('F-1', ['OSS-Fuzz', 'libfoo', { ranges: [{ type: 'GIT', events: [{ introduced: '0' }] }] }]),
  about('F-2', ['OSS-Fuzz', 'libbar', { versions: ['1.0'] }]),
  about('E-1', ['npm', 'empty', {}]),
  about('GA-1', ['GitHub Actions', 'a/action', { ranges: [{ type: 'ECOSYSTEM', events: FROM_4_1 }] }]),
  about('GO-1', ['Go', 'a.example/b', below('0.0.0-20220906165146-f3363e06e74c', 'SEMVER')]),
  about('K-1', ['Packagist', 'a/kernel', below('4.4.50')]),
  about('O-1', ['npm', 'open', below('2.0.0', 'SEMVER')]),
  ...STREAMS,
]

const ecosystems = RECORDS.flatMap(({ affected }) =>
  affected.map((one) => (one as { package: { ecosystem: string } }).package.ecosystem),
)

const read = (id: string) => {
  const found = RECORDS.find((one) => one.id === id)
  return found === undefined ? null : { content: Buffer.from(JSON.stringify(found)), prefixes: [] as string[] }
}

/** Looks in every record for each package. */
const SOURCE: JudgeSource = {
  listCandidates: (_ecosystem, _name, after, limit) =>
    RECORDS.filter(({ id }) => id > after)
      .sort((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, limit),
  readRecord: (_ecosystem, id) => read(id),
  listPackageRecords: () => ({ records: new Map(), complete: 0 }),
  hasEcosystem: (name) => ecosystems.some((one) => isMeant(one, name)),
  hasRelease: (name) => coversAsked(ecosystems, name),
}

const component = (purl: string, more: Partial<SbomComponent> = {}): SbomComponent => ({
  ref: '',
  name: 'x',
  version: '',
  purl,
  source: null,
  kind: null,
  type: '',
  licences: '',
  ...more,
})

const judge = (purl: string, more: Partial<SbomComponent> = {}, systems: string[] = [], option: string | null = null) =>
  judgeComponents([component(purl, more)], SOURCE, {
    check: () => undefined,
    around: surroundingsOf({ systems, option }),
  })

const LIBSSL = 'pkg:deb/debian/libssl3@3.0.9-1?arch=amd64'

test('a package is judged by the records of its release alone', async () => {
  const { findings } = await judge('pkg:deb/debian/openssl@3.0.11-1~deb12u2?distro=debian-12.7')
  expect(findings.map(({ id }) => id)).toEqual(['D-BOTH'])
  expect(findings[0]?.component).toMatchObject({
    release: { name: 'Debian:12', from: 'purl' },
    allReleases: false,
  })
})

test('the operating system of the SBOM counts where the package URL names no release, and --distro where neither does', async () => {
  const purl = 'pkg:deb/debian/openssl@3.0.11-1~deb12u2'
  const releaseOf = async (...args: [string[], string | null]) =>
    (await judge(purl, {}, ...args)).findings.map(({ component: { release } }) => release)[0]
  expect(await releaseOf(['debian-12.7'], 'debian-13')).toEqual({ name: 'Debian:12', from: 'sbom' })
  expect(await releaseOf([], 'bookworm')).toEqual({ name: 'Debian:12', from: 'option' })
  expect(await releaseOf(['debian-12', 'debian-13'], 'trixie')).toEqual({ name: 'Debian:13', from: 'option' })
  expect(await releaseOf(['debian-12', 'debian-12.7', 'bookworm'], 'trixie')).toEqual({
    name: 'Debian:12',
    from: 'sbom',
  })
})

test('a package of AlmaLinux is judged by its own name in records that name it, and by its source in others', async () => {
  const source = 'distro=almalinux-9&upstream=perl-5.32.1-481.el9.src.rpm' // perl has an epoch, perl-Errno has none
  const judged = async (version: string) => {
    const { findings } = await judge(`pkg:rpm/almalinux/perl-Errno@${version}?${source}`)
    return findings.map(({ id, source: by }) => [id, by])
  }
  expect(await judged('1.30-481.el9')).toEqual([['L-ONE', 'perl']])
  expect(await judged('1.30-480.el9')).toEqual([
    ['L-BOTH', null],
    ['L-ONE', 'perl'],
  ])
})

test('an epoch of a source package that is not known is that of the record, and no record passes as clear for it', async () => {
  const judged = async (purl: string) => {
    const { findings, notJudged } = await judge(`pkg:rpm/${purl}`)
    return [findings.map(({ id }) => id), notJudged.map(({ code, reason }) => `${code} ${reason.replace(/^.*: /, '')}`)]
  }
  const perl = (version: string, release: string) =>
    judged(`rocky/perl-Errno@${version}?distro=rocky-9&upstream=perl-5.32.1-${release}.el9.src.rpm`)
  const open = 'partly_compared the epoch of its source package is not known'
  expect(await perl('1.30-480.el9', '480')).toEqual([['R-1', 'R-BOTH'], []])
  // the record that names the package itself decides by its own version
  expect(await perl('1.30-481.el9', '481')).toEqual([[], [open]])
  expect(await judged('rocky/perl-Errno@1.30-481.el9?distro=rocky-9&upstream=perl%404:5.32.1-482.el9')).toEqual([
    [],
    [],
  ])
  const bind = (version: string) => judged(`sles/bind-utils@1:1.0-1?distro=sles-15.5&upstream=bind-${version}.src.rpm`)
  expect(await bind('9.16.49-1')).toEqual([['S-1'], []])
  expect(await bind('9.16.50-1')).toEqual([[], []])
})

describe('a build of a module of rpm', () => {
  const judged = async (purl: string) => {
    const { findings, notJudged } = await judge(`pkg:rpm/${purl}`)
    return [...findings.map(({ id, fixed }) => `${id} ${fixed.join()}`), ...notJudged.map(({ code }) => code)]
  }
  const node = (version: string, label = '') =>
    judged(`almalinux/nodejs@1:${version}?distro=almalinux-8${label === '' ? '' : `&${label}`}`)
  const FIX_18 = 'NODE-18 1:18.20.2-1.module_el8.9.0+3764+1'
  const FIX_20 = 'NODE-20 1:20.12.2-2.module_el8.9.0+3785+2'

  test('is judged by the records of its stream, where both say it', async () => {
    const labels = ['rpmmod=nodejs:18:8090020240301:rhel8', 'modularitylabel=nodejs%3A18%3A809%3Arhel8']
    for (const label of labels) {
      expect(await node('18.20.1-1.module_el8.9.0+3700+1', label)).toEqual([FIX_18])
      expect(await node('18.20.4-1.module_el8.9.0+3900+1', label)).toEqual([]) // below the fix of 20
    }
    expect(await node('20.11.0-1.module_el8.9.0+3700+2', 'rpmmod=nodejs:20')).toEqual([FIX_20])
    expect(await node('22.0.0-1.module_el8.9.0+3700+2', 'rpmmod=nodejs:22')).toEqual([])
  })

  test('is not clear by a fix that may be of another stream', async () => {
    expect(await node('20.11.0-1.module_el8.9.0+3700+2')).toEqual([FIX_20, 'partly_compared'])
    expect(await node('18.20.2-1.module_el8.9.0+3764+1')).toEqual([FIX_20, 'partly_compared'])
    expect(await node('20.12.2-2.module_el8.9.0+3785+2')).toEqual(['partly_compared'])
    expect(await judged('rocky/ruby@3.1.2-1.module+el8.7.0+1+4?distro=rocky-8&rpmmod=ruby:3.1')).toEqual([
      'not_compared',
    ])
    const fixed = ['2.7.8-139.module+el8.8.0+1243+3', '2.7.8-140.module+el8.8.0+9+3', '9-1.module+el8.8.0+1243+3']
    for (const version of fixed) expect(await judged(`rocky/ruby@${version}?distro=rocky-8`)).toEqual([])
  })

  test('is of another stream only where a summary names one of its module', async () => {
    const older = 'module+el8.7.0+1059+4?distro=rocky-8&rpmmod='
    expect(await judged(`rocky/postgresql@13.10-1.${older}postgresql:13`)).toEqual([
      'PG 13.11-1.module+el8.8.0+1299+5',
      'partly_compared',
    ])
    expect(await judged(`rocky/389-ds-base@1.4.3.30-1.${older}389-ds:1.4`)).toEqual([
      'DS 1.4.3.32-2.module+el8.8.0+1271+6',
    ])
    expect(await judged(`rocky/389-ds-base@1.3.9-1.${older}389-ds:1.3`)).toEqual([])
  })

  test('has other records than what is in no module', async () => {
    expect(await node('16.20.2-1.el8')).toEqual([])
    expect(await node('16.20.2')).toEqual([FIX_18, FIX_20]) // it does not say where it is from
    expect(await judged('rocky/perl@4:5.26.3-421.el8?distro=rocky-8')).toEqual(['PERL 4:5.26.3-422.el8'])
    expect(await judged('rocky/perl@4:5.24.1-1.module+el8.7.0+1+4?distro=rocky-8')).toEqual([])
  })
})

test('a package of CentOS is judged by the records of Red Hat, which is said of it and in the sum', async () => {
  const judged = async (purl: string, systems: string[] = []) => {
    const { findings, rebuilt } = await judge(purl, {}, systems)
    return [findings.map(({ id, component: { recordsOf } }) => [id, recordsOf]), rebuilt]
  }
  const found = [[['H-1', 'Red Hat']], 1]
  expect(await judged('pkg:rpm/centos/bash@4.2-1?distro=centos-7')).toEqual(found)
  expect(await judged('pkg:rpm/bash@4.2-1?distro=centos-7')).toEqual(found)
  expect(await judged('pkg:rpm/bash@4.2-1', ['centos-7'])).toEqual(found)
  expect(await judged('pkg:rpm/redhat/bash@4.2-1?distro=rhel-7', ['centos-7'])).toEqual([[['H-1', null]], 0])
})

test('without a release the records of all releases count, and that is said of the component and in the sum', async () => {
  const judged = await judge('pkg:deb/debian/openssl@3.0.11-1~deb12u2', {}, ['debian-12', 'alpine-3.18'])
  expect(judged.findings.map(({ id }) => id)).toEqual(['D-13', 'D-BOTH'])
  expect(judged.findings[0]?.component).toMatchObject({ release: null, allReleases: true })
  expect(judged).toMatchObject({ allReleases: 1, binaryNameOnly: 1, packages: 1 })
})

test('a release that is not known here is named', async () => {
  const { unreadReleases, findings } = await judge(`${LIBSSL}&distro=debian-nonesuch`)
  expect(unreadReleases).toEqual(['debian-nonesuch'])
  expect(findings[0]?.component.allReleases).toBe(true)
})

test('a release of which there is no record at all is not judged, and named', async () => {
  const { findings, notJudged } = await judge('pkg:deb/debian/openssl@3.0.9-1?distro=debian-10')
  expect(findings).toEqual([])
  expect(notJudged).toMatchObject([
    { code: 'no_records', reason: 'this mirror has no records of the ecosystem Debian:10' },
  ])
})

test('a release that only records without a release may be about is partly judged, where others name theirs', async () => {
  const { findings, notJudged } = await judge('pkg:rpm/mageia/curl@7.88.1-9?distro=mageia-9')
  expect(findings.map(({ id }) => id)).toEqual(['M-0'])
  expect(notJudged).toMatchObject([
    { code: 'partly_compared', reason: expect.stringContaining('no records of Mageia:9') as string },
  ])
  expect((await judge('pkg:rpm/mageia/curl@7.88.1-9?distro=mageia-8')).notJudged).toEqual([])
})

test('a package is found by its source package, which the package URL or the SBOM names', async () => {
  const byPurl = await judge(`${LIBSSL}&distro=debian-12&upstream=openssl%403.0.9-1`)
  const byOther = await judge(`${LIBSSL}&distro=debian-12&source=openssl`)
  const bySbom = await judge(`${LIBSSL}&distro=debian-12`, { source: { name: 'openssl', version: '3.0.9-1' } })
  for (const { findings, binaryNameOnly } of [byPurl, byOther, bySbom]) {
    expect(findings.map(({ id, source, fixed }) => [id, source, fixed])).toEqual([
      ['D-12', 'openssl', ['3.0.11-1~deb12u2']],
      ['D-BOTH', null, ['3.0.12-1']], // its own name is in that record too
    ])
    expect(binaryNameOnly).toBe(0)
  }
  const unknown = await judge(`${LIBSSL}&distro=debian-12`)
  expect(unknown.findings.map(({ id }) => id)).toEqual(['D-BOTH'])
  expect(unknown.binaryNameOnly).toBe(1)
})

test('the version of the source package is compared, not that of the binary package', async () => {
  const upstream = (version: string) => `pkg:deb/debian/libssl3@9?distro=debian-12&upstream=openssl%40${version}`
  const found = async (version: string) => (await judge(upstream(version))).findings.map(({ id }) => id)
  expect(await found('3.0.9-1')).toEqual(['D-12', 'D-BOTH'])
  expect(await found('3.0.11-1~deb12u2')).toEqual(['D-BOTH'])
})

test('components that differ in their source package alone are judged each', async () => {
  const one = component(LIBSSL, { source: { name: 'openssl', version: '' } })
  const check = () => undefined
  const { packages } = await judgeComponents([one, component(LIBSSL), one], SOURCE, { check })
  expect(packages).toBe(2)
})

test('components with one package URL whose names differ in case are judged each', async () => {
  const purl = 'pkg:npm/jsonstream@1.0.0'
  const named = (name: string) => component(purl, { name })
  const all = [named('jsonstream'), named('JSONStream'), named('JSONStream')]
  const { packages } = await judgeComponents(all, SOURCE, { check: () => undefined })
  expect(packages).toBe(2)
})

test('a component none of whose records can be compared is not judged, with the reason', async () => {
  const whyNot = async (purl: string) => {
    const { findings, notJudged } = await judge(purl)
    expect(findings).toEqual([])
    return notJudged.map(({ code, reason }) => [code, reason.replace(/^.*version: /, '')])
  }
  expect(await whyNot('pkg:conan/zlib@1.2.11')).toEqual([
    ['not_compared', 'no order of versions is known for ConanCenter'],
  ])
  expect(await whyNot('pkg:npm/commits@1.0.0')).toEqual([['not_compared', 'they name commits alone']])
  expect(await whyNot('pkg:npm/bounds@1.0.0')).toEqual([
    ['not_compared', 'they name versions that cannot be read, or ranges without a first version, or with several ends'],
  ])
  expect(await whyNot('pkg:npm/empty@1.0.0')).toEqual([['not_compared', 'they name no versions']])
  expect(await whyNot('pkg:conan/mixed@1.2.11')).toEqual([
    ['partly_compared', 'no order of versions is known for ConanCenter'],
  ])
  expect(await whyNot('pkg:npm/unrecorded@1.0.0')).toEqual([])
})

test('what may be another package is said to be so, whether a record has its name or not', async () => {
  const codes = async (purl: string) => (await judge(purl)).notJudged.map(({ code }) => code)
  expect(await codes('pkg:generic/openssl@1.1.1')).toEqual(['ambiguous'])
  expect(await codes('pkg:generic/libbar@2.0')).toEqual(['ambiguous'])
  expect(await codes('pkg:generic/libfoo@2.0')).toEqual(['not_compared'])
})

test.each([
  ['githubactions/a/action', 'v4 v4.1 4 v4-beta', 'v3 v4.0 v4.1.5 v4.2 v5 v40'],
  ['composer/a/kernel', '4.4.x-dev 4.x-dev v4.4.*-dev', '4.4.50 4.5.x-dev 5.x-dev'],
  ['golang/a.example/b', 'v0.0.0 0.0.0', 'v0.0.0-20230101000000-000000000000 v0.1.0'],
  ['npm/open', '2 2.0', '2.1 2.0.0 20'],
])(
  'a version that is one of several is clear only where the record does not tell them apart: %s',
  async (path, open, clear) => {
    const said = (versions: string) =>
      Promise.all(
        versions.split(' ').map(async (version) => {
          const { findings, notJudged } = await judge(`pkg:${path}@${encodeURIComponent(version)}`)
          return [version, findings.length + notJudged.length]
        }),
      )
    expect(await said(open)).toEqual(open.split(' ').map((version) => [version, 1]))
    expect(await said(clear)).toEqual(clear.split(' ').map((version) => [version, 0]))
  },
)

test('what is no package is told from a package that cannot be judged', async () => {
  const { notJudged } = await judgeComponents(
    [
      component('pkg:oci/image@sha256%3A1', { kind: 'what the SBOM describes' }),
      component('pkg:oci/other@sha256%3A1'),
      { ...component(''), purl: null, kind: 'a file' },
    ],
    SOURCE,
    { check: () => undefined },
  )
  expect(notJudged.map(({ code, reason }) => [code, reason])).toEqual([
    ['no_package', 'it is what the SBOM describes, and no package'],
    ['unknown_ecosystem', 'no ecosystem of vulnerability records is known for pkg:oci'],
    ['no_package', 'it is a file, and no package'],
  ])
})
