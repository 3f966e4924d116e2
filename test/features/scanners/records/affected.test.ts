import { existsSync } from 'node:fs'
import AdmZip from 'adm-zip'
import { describe, expect } from 'vitest'
import {
  type Asked,
  type OsvRecord,
  type VersionVerdict,
  concerns as judge,
} from '../../../../src/features/scanners/records/affected.ts'
import { askVersion } from '../../../../src/features/scanners/records/ranges.ts'
import { isMeant } from '../../../../src/base/identity/meant.ts'
import { findEcosystem } from '../../../../src/base/versions/ecosystems.ts'
import { bothTest, LONG, test } from '../../../support/tables.ts'

/** To its end, whatever steps it takes. */
function verdictOn(record: OsvRecord, asked: Asked, vendor?: string): VersionVerdict {
  const work = judge(record, asked, vendor)
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

function concerns(record: OsvRecord, asked: Asked, vendor?: string): boolean {
  return verdictOn(record, asked, vendor) === 'affected'
}

function verdict(record: OsvRecord, ecosystem: string, version: string, name = 'p'): VersionVerdict {
  const found = findEcosystem(ecosystem)
  if (found === null) throw new Error(`no ecosystem ${ecosystem}`)
  return verdictOn(record, { ecosystem: found, name, version: askVersion(version) })
}

function isAffected(record: OsvRecord, ecosystem: string, name: string, version: string): boolean {
  return verdict(record, ecosystem, version, name) === 'affected'
}

type Event = Readonly<Record<string, string>>

/** A record of one package with these events in one range. */
function ranged(ecosystem: string, events: readonly Event[], more: object = {}): OsvRecord {
  const type = 'ECOSYSTEM'
  return {
    affected: [{ package: { ecosystem, name: 'p' }, ranges: [{ type, events }], ...more }],
  }
}

function semver(ecosystem: string, events: readonly Event[]): OsvRecord {
  const ranges = [{ type: 'SEMVER', events }]
  return { affected: [{ package: { ecosystem, name: 'p' }, ranges }] }
}

/** The versions out of `versions` that a record concerns. */
function hit(record: OsvRecord, ecosystem: string, versions: string): string {
  const hits = versions.split(' ').filter((version) => isAffected(record, ecosystem, 'p', version))
  return hits.join(' ')
}

describe('the evaluation of the OSV schema', () => {
  test('takes a fix for the first version that is not affected, and events in any order', () => {
    const events = [{ fixed: '1.0.2' }, { introduced: '1.0.0' }]
    expect(hit(ranged('npm', events), 'npm', '0.9.9 1.0.0 1.0.1 1.0.2-rc.1 1.0.2 2.0.0')).toBe('1.0.0 1.0.1 1.0.2-rc.1')
  })

  test('goes through several introductions and fixes in one range', () => {
    const events = [{ introduced: '0' }, { fixed: '1.0.2' }, { introduced: '3.0.0' }, { fixed: '3.2.5' }]
    const record = ranged('npm', events)
    expect(hit(record, 'npm', '0.0.0-a 0.1.0 1.0.2 2.9.9 3.0.0 3.2.4 3.2.5')).toBe('0.0.0-a 0.1.0 3.0.0 3.2.4')
  })

  test('begins again where a fix and an introduction have one version, and is empty where they come the other way round', () => {
    const again = [{ introduced: '0' }, { fixed: '7.0.0' }, { introduced: '7.0.0' }, { fixed: '8.0.0' }]
    expect(hit(semver('npm', again), 'npm', '6.0.0 7.0.0 7.5.0 8.0.0')).toBe('6.0.0 7.0.0 7.5.0')
    const empty = [{ introduced: '0' }, { fixed: '7.0.0' }, { introduced: '8.0.0' }, { fixed: '8.0.0' }]
    expect(hit(semver('npm', empty), 'npm', '6.0.0 7.0.0 8.0.0 9.0.0')).toBe('6.0.0')
    const one = [{ last_affected: '7.0.0' }, { introduced: '7.0.0' }]
    expect(hit(semver('npm', one), 'npm', '6.0.0 7.0.0 8.0.0')).toBe('7.0.0')
  })

  test('counts the last affected version in', () => {
    const record = ranged('PyPI', [{ introduced: '0' }, { last_affected: '2.1.214' }])
    expect(hit(record, 'PyPI', '2.1.213 2.1.214 2.1.214.post1 2.1.215')).toBe('2.1.213 2.1.214')
  })

  test('applies the largest of several limits, and takes * for none', () => {
    const until = (...limits: string[]): OsvRecord =>
      ranged('npm', [{ introduced: '1.0.0' }, ...limits.map((limit) => ({ limit }))])
    expect(hit(until('2.0.0'), 'npm', '1.0.0 1.9.9 2.0.0 3.0.0')).toBe('1.0.0 1.9.9')
    expect(hit(until('2.0.0', '3.0.0'), 'npm', '1.0.0 2.5.0 3.0.0')).toBe('1.0.0 2.5.0')
    expect(hit(until('*'), 'npm', '0.9.0 1.0.0 99.0.0')).toBe('1.0.0 99.0.0')
  })

  test('adds listed versions to ranges, and treats two spellings of a version as equal', () => {
    const listed = ranged('PyPI', [{ introduced: '1.0' }, { fixed: '1.1' }], { versions: ['3.1'] })
    expect(hit(listed, 'PyPI', '1.0.5 1.1 3.1 3.1.0 3.2')).toBe('1.0.5 3.1 3.1.0')
    const only: OsvRecord = {
      affected: [{ package: { ecosystem: 'GitHub Actions', name: 'p' }, versions: ['v4', 'main'] }],
    }
    expect(hit(only, 'GitHub Actions', 'v4 4 v5 main')).toBe('v4 4 main')
  })

  test('takes a local version of PyPI for the one that it is a build of, unless a vendor has patched that', () => {
    const builds = '2.0.1 2.0.1+cu118 v2.0.1+cpu 2.0.1+root.io.1 2.0.1.post1 2.0.2+cu118'
    const affected = '2.0.1 2.0.1+cu118 v2.0.1+cpu'
    expect(hit(ranged('PyPI', [{ introduced: '0' }, { last_affected: '2.0.1' }]), 'PyPI', builds)).toBe(affected)
    expect(hit(ranged('PyPI', [], { ranges: [], versions: ['2.0.1'] }), 'PyPI', builds)).toBe(affected)
    expect(hit(ranged('PyPI', [{ introduced: '0' }, { fixed: '2.0.1' }]), 'PyPI', '2.0.0+cpu 2.0.1+cpu')).toBe(
      '2.0.0+cpu',
    )
    const local = ranged('PyPI', [{ introduced: '0' }, { last_affected: '2.0.1+cpu' }])
    expect(hit(local, 'PyPI', '2.0.1+cpu 2.0.1+cu118')).toBe('2.0.1+cpu')
  })

  test('ignores ranges of commits, also where there is no other range', () => {
    const events = [{ introduced: '0' }]
    const affected = [{ package: { ecosystem: 'Go', name: 'p' }, ranges: [{ type: 'GIT', events }] }]
    expect(hit({ affected }, 'Go', '1.0.0 0')).toBe('')
    expect(isAffected({ affected }, 'Go', 'p', '')).toBe(true)
  })

  test('takes a tag in a list beside commits for the version in it, where an ecosystem has no order', () => {
    const versions = ['v5.7.1', 'thing-2.17.1', '1_10_10', '1.1.1k', 'php-8.1.2RC1']
    const commits = { type: 'GIT', events: [{ introduced: '0' }] }
    const tagged = (ranges: object[]): OsvRecord => ({
      affected: [{ package: { ecosystem: 'OSS-Fuzz', name: 'p' }, ranges, versions }],
    })
    const asked = '5.7.1 v2.17.1 1.10.10 openssl-1.1.1k 8.1.2rc1 v5.7.1 5.7 5.7.1.1 1.1.1 1.1.1l 8.1.2'
    expect(hit(tagged([commits]), 'OSS-Fuzz', asked)).toBe('5.7.1 v2.17.1 1.10.10 openssl-1.1.1k 8.1.2rc1 v5.7.1')
    expect(hit(tagged([]), 'OSS-Fuzz', asked)).toBe('v5.7.1')
    const affected = [{ package: { ecosystem: 'OSS-Fuzz', name: 'hdf5' }, ranges: [commits], versions: ['hdf5-1_10'] }]
    expect(isAffected({ affected }, 'OSS-Fuzz', 'hdf5', '1.10')).toBe(true)
    const main: OsvRecord = {
      affected: [{ package: { ecosystem: 'OSS-Fuzz', name: 'p' }, ranges: [commits], versions: ['main'] }],
    }
    expect(hit(main, 'OSS-Fuzz', 'main develop 1.0')).toBe('main')
  })

  test('takes SEMVER ranges by SemVer in ecosystems without an order of their own', () => {
    const events = [{ introduced: '1.0.0' }, { fixed: '1.2.0' }]
    const record = semver('Kubernetes', events)
    expect(hit(record, 'Kubernetes', 'v1.0.0 v1.1 v1.2.0 main')).toBe('v1.0.0 v1.1')
  })

  test.each([
    ['Julia', ['4.3.1+0', '4.3.1+2', '4.4.0+0'], '4.3.0+1 4.3.1+2 4.3.2+0', '4.3.1+0 4.3.1+1 4.4.0+0'],
    ['Bitnami', ['1.2.3-4', '1.2.4-0', '1.2.4-2'], '1.2.3 1.2.3-3 1.2.4-0 1.2.4-1', '1.2.3-4 1.2.4 1.2.4-2'],
    ['Pub', ['1.0.0+1', '1.1.0+1', '1.2.0'], '1.0.0 1.1.0+1 1.1.5', '1.0.0+1 1.0.1 1.1.0 1.2.0'],
    ['Root:npm', ['4.2.1-root.io.2', '4.3.0', '4.3.1'], '4.2.1 4.2.1-root.io.1 4.3.0', '4.2.1-root.io.2 4.2.2'],
    ['Root:Julia', ['4.3.1+1', '4.3.1+2', '4.3.3'], '4.3.1+0 4.3.1+2', '4.3.1+1 4.3.3'],
    ['Go', ['1.20.6', '1.21.0-0', '1.21.1'], 'go1.20.5 go1.21rc2 1.21', 'go1.20.6 go1.21.1'],
  ])(
    'takes SEMVER ranges by the order of an ecosystem that distinguishes more than SemVer: %s',
    (ecosystem, [fixed = '', introduced = '', end = ''], affected, others) => {
      const events = [{ introduced: '0' }, { fixed }, { introduced }, { fixed: end }]
      expect(hit(semver(ecosystem, events), ecosystem, `${affected} ${others}`)).toBe(affected)
    },
  )

  test('does not place an invalid version in a range', () => {
    expect(hit(ranged('npm', [{ introduced: '0' }]), 'npm', '(devel) latest')).toBe('')
  })

  test.each<[why: string, events: Record<string, unknown>[], affected: string]>([
    ['a fix', [{ introduced: '0' }, { fixed: '2.6.0-cu124' }], ''],
    ['a last version', [{ introduced: '0' }, { last_affected: '2.6.0-cu124' }], ''],
    ['a limit', [{ introduced: '0' }, { limit: '2.6.0-cu124' }], ''],
    ['a bound that is no text', [{ introduced: '0' }, { last_affected: 2 }], ''],
    ['a bound in front', [{ fixed: 'soon' }, { introduced: '0' }], ''],
    [
      'the bound of the last branch, which leaves the others',
      [{ introduced: '0' }, { fixed: '1.5' }, { introduced: '2.0' }, { last_affected: '2.6-x' }],
      '1.0',
    ],
    [
      'the bound of the first branch, which leaves the others',
      [{ introduced: '0' }, { fixed: '1.5-x' }, { introduced: '2.0' }, { fixed: '3.0' }],
      '2.0 2.5',
    ],
    ['one of two fixes', [{ introduced: '0' }, { fixed: '1.5' }, { fixed: '1.5-x' }], '1.0'],
    ['a limit behind a fix', [{ introduced: '0' }, { fixed: '2.5' }, { limit: '2-x' }], '1.0 2.0'],
    ['the start', [{ introduced: '1-x' }, { fixed: '3.0' }], ''],
    ['nothing: null and empty', [{ introduced: '0', fixed: null, limit: '' }], '1.0 2.0 2.5 3.0'],
  ])('never opens a range at an event that its ecosystem cannot parse: %s', (_, events, affected) => {
    const record = ranged('PyPI', events as Event[])
    expect(hit(record, 'PyPI', '1.0 2.0 2.5 3.0')).toBe(affected)
  })

  test('counts listed versions beside a range that cannot be evaluated', () => {
    const events = [{ introduced: '0' }, { last_affected: '2.6.0-cu124' }]
    const record = ranged('PyPI', events, { versions: ['2.5.0', '2.6.0-cu124'] })
    expect(hit(record, 'PyPI', '1.0 2.5 2.6.0-cu124 99')).toBe('2.5 2.6.0-cu124')
  })

  test('never takes a withdrawn record', () => {
    const record = ranged('npm', [{ introduced: '0' }])
    expect(isAffected({ ...record, withdrawn: '2024-01-01T00:00:00Z' }, 'npm', 'p', '')).toBe(false)
    expect(isAffected({ ...record, withdrawn: null }, 'npm', 'p', '1.0.0')).toBe(true)
  })

  test.each(['9999-01-01T00:00:00Z', 'soon'])(
    'takes a record whose withdrawal is dated %s: it is not withdrawn',
    (withdrawn) => {
      expect(isAffected({ ...ranged('npm', [{ introduced: '0' }]), withdrawn }, 'npm', 'p', '1.0.0')).toBe(true)
    },
  )

  test.each([
    ['Debian:12', '1.0-1.root.io.1', ['1.0-1+deb12u1'], 'patch'],
    ['Debian:12', '1.0-1.root.io.1', ['1.0-1.1'], 'patch'],
    ['Debian:12', '1.0-1.root.io.1', ['1.0-1'], 'clear'],
    ['Debian:12', '1.0-1+deb12u4.root.io.2', ['1.0-1+deb12u4'], 'clear'],
    ['Debian:12', '1.0-1+deb12u4.root.io.2', ['1.0-1+deb12u5'], 'affected'],
    ['Debian:12', '1.0-1.root.io.1', ['1.0-1+deb12u1', '1.0-1.root.io.1'], 'clear'],
    ['Debian:12', '1.0-1.root.io.1', ['1.0-1+deb12u1', '1.0-1.root.io.2'], 'affected'],
    ['Alpine:v3.18', '8.1-r00071', ['8.1-r8'], 'patch'],
    ['Alpine:v3.18', '8.1-r80071', ['8.1-r8'], 'clear'],
    ['Alpine:v3.18', '8.1-r00071', ['8.0-r8'], 'clear'],
    ['Root:Alpine:3.18', '8.1-r00071', ['8.1-r8', '8.1-r00072'], 'affected'],
    ['Root:Alpine:3.18', '8.1-r00072', ['8.1-r8', '8.1-r00072'], 'clear'],
    ['Root:Alpine:3.18', '8.1-r00073', ['8.1-r8', '8.1-r00072'], 'clear'],
    ['Root:Alpine:3.18', '8.1-r8', ['8.1-r8', '8.1-r00072'], 'clear'],
    ['Debian:12', '1.0-r10071', ['1.0-r8'], 'clear'],
    ['Maven', '1.0-r20071', ['1.0-r15000'], 'clear'],
    ['PyPI', '1.0-r20071', ['1.0-r15000'], 'clear'],
    ['Maven', '4.2.1-root.io.1', ['4.2.1-sp-1'], 'patch'],
    ['Root:npm', '4.2.1-root.io.1', ['4.2.1'], 'clear'],
    ['PyPI', '4.0.1+root.io.1', ['4.0.1'], 'clear'],
  ] as const)(
    'of %s takes the build %s, with fixes in %j, by what it patches: %s',
    (ecosystem, version, fixes, expected) => {
      const record = ranged(ecosystem, [{ introduced: '0' }, ...fixes.map((fixed) => ({ fixed }))])
      expect(verdict(record, ecosystem, version)).toBe(expected)
    },
  )

  test.each([
    ['PyPI', '4.0.1+root.io.1', '4.0.1', 'patch'],
    ['PyPI', '4.0.1+root.io.1', '4.0', 'clear'],
    ['Debian:12', '1.0-1.root.io.1', '1.0-1+deb12u1', 'patch'],
  ] as const)(
    'of %s does not clear %s by the last affected version %s that it patches: %s',
    (ecosystem, version, end, expected) => {
      const record = ranged(ecosystem, [{ introduced: '0' }, { last_affected: end }])
      expect(verdict(record, ecosystem, version)).toBe(expected)
    },
  )

  test.each([
    [{ ecosystem: 'NPM', name: 'p' }, 'npm', 'p'],
    [{ ecosystem: 'pypi', name: 'P_p' }, 'PyPI', 'p-p'],
    [{ ecosystem: 'debian:12', name: 'p' }, 'Debian:12', 'p'],
    [{ ecosystem: 'root:ALPINE:3.18', name: 'p' }, 'Root:Alpine:3.18', 'p'],
    [{ purl: 'pkg:npm/%40s/p' }, 'npm', '@s/p'],
    [{ name: 'other', purl: 'pkg:maven/g/p' }, 'Maven', 'g:p'],
    [{ ecosystem: '', name: '', purl: 'pkg:golang/example.com/p' }, 'Go', 'example.com/p'],
    [{ purl: 'pkg:deb/debian/p?distro=bookworm' }, 'Debian:12', 'p'],
  ])('takes %j for a package of %s', (named, ecosystem, name) => {
    const [affected] = ranged('', [{ introduced: '0' }, { fixed: '2' }]).affected as [object]
    const record = { affected: [{ ...affected, package: named }] }
    expect(['1', '2'].map((version) => isAffected(record, ecosystem, name, version))).toEqual([true, false])
  })

  test.each([
    [{ purl: 'pkg:deb/debian/p?distro=bookworm' }, 'Debian:11'],
    [{ ecosystem: 'npm', name: 'q', purl: 'pkg:npm/p' }, 'npm'],
    [{ purl: 'no package URL' }, 'npm'],
  ])('does not take %j for one of %s', (named, ecosystem) => {
    const record = { affected: [{ package: named, versions: ['1'] }] }
    expect(isAffected(record, ecosystem, 'p', '1')).toBe(false)
  })

  test('accepts malformed records without an exception', () => {
    const package_ = { ecosystem: 'npm', name: 'p' }
    const odd: OsvRecord[] = [
      {},
      { affected: 'all' },
      { affected: [null, 1, {}, { package: null }, { package: { name: 'p' } }] },
      { affected: [{ package: package_, versions: 'x', ranges: 'x' }] },
      { affected: [{ package: package_, versions: [1, null], ranges: [null, {}] }] },
      { affected: [{ package: package_, ranges: [{ type: 'ECOSYSTEM', events: [null, {}] }] }] },
      {
        affected: [{ package: package_, ranges: [{ type: 'NEW', events: [{ introduced: '0' }] }] }],
      },
    ]
    expect(odd.filter((record) => isAffected(record, 'npm', 'p', '1.0.0'))).toEqual([])
  })

  test('keeps packages, ecosystems and releases apart', () => {
    const record: OsvRecord = {
      affected: [
        {
          package: { ecosystem: 'Debian:12', name: 'curl' },
          ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '7.88.1-10' }] }],
        },
        {
          package: { ecosystem: 'Debian:11', name: 'curl' },
          ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '7.74.0-1' }] }],
        },
      ],
    }
    expect(isAffected(record, 'Debian:12', 'curl', '7.80.0-1')).toBe(true)
    expect(isAffected(record, 'Debian:11', 'curl', '7.80.0-1')).toBe(false)
    expect(isAffected(record, 'Debian:13', 'curl', '7.80.0-1')).toBe(false)
    expect(isAffected(record, 'Debian', 'curl', '7.80.0-1')).toBe(true)
    expect(isAffected(record, 'Debian:12', 'wget', '7.80.0-1')).toBe(false)
    expect(isAffected(record, 'Ubuntu:12', 'curl', '7.80.0-1')).toBe(false)
  })

  test("orders a vendor's ecosystem like its base, and its patches after the versions that they patch", () => {
    const npm = ranged('Root:npm', [{ introduced: '0' }, { fixed: '4.2.1-root.io.2' }])
    expect(hit(npm, 'Root:npm', '4.2.0 4.2.1 4.2.1-root.io.1 4.2.1-root.io.2 4.2.2')).toBe(
      '4.2.0 4.2.1 4.2.1-root.io.1',
    )
    const debian = ranged('Root:Debian:12', [{ introduced: '0' }, { fixed: '2.4-3.root.io.2' }])
    expect(hit(debian, 'Root:Debian:12', '2.4-3 2.4-3.root.io.1 2.4-3.root.io.2 1:0')).toBe('2.4-3 2.4-3.root.io.1')
    expect(hit(debian, 'Root:Debian', '2.4-3')).toBe('2.4-3')
    expect(hit(debian, 'Root', '2.4-3')).toBe('2.4-3')
    expect(hit(debian, 'Debian:12', '2.4-3')).toBe('')
  })

  test('orders the patches of a record of several vendors each after the version that it patches', () => {
    const record = ranged('npm', [{ introduced: '0' }, { fixed: '4.2.1-tuxcare.2' }])
    const npm = findEcosystem('npm')
    const affected = ['4.2.1', '4.2.1-tuxcare.1', '4.2.1-tuxcare.2', '4.2.2'].filter((version) =>
      concerns(record, { ecosystem: npm, name: 'p', version: askVersion(version) }, 'Root'),
    )
    expect(affected).toEqual(['4.2.1', '4.2.1-tuxcare.1'])
  })

  test("uses the vendor's order also where its prefix was removed", () => {
    const record = ranged('npm', [{ introduced: '0' }, { fixed: '4.2.1-root.io.2' }])
    const npm = findEcosystem('npm')
    if (npm === null) throw new Error('no npm')
    const concerned = (version: string, vendor?: string): boolean =>
      concerns(record, { ecosystem: npm, name: 'p', version: askVersion(version) }, vendor)
    expect([concerned('4.2.1'), concerned('4.2.1', 'Root')]).toEqual([false, true])
    expect([concerned('4.2.1-root.io.2', 'Root'), concerned('4.2.2', 'Root')]).toEqual([false, false])
  })

  test('compares names of PyPI as PEP 503 has it, and others as they are', () => {
    const affected = (ecosystem: string): OsvRecord => ({
      affected: [{ package: { ecosystem, name: 'Flask.SQL_Alchemy' }, versions: ['1'] }],
    })
    expect(isAffected(affected('PyPI'), 'PyPI', 'flask-sql-alchemy', '1')).toBe(true)
    expect(isAffected(affected('Root:PyPI'), 'Root:PyPI', 'flask__sql.alchemy', '1')).toBe(true)
    expect(isAffected(affected('npm'), 'npm', 'flask-sql-alchemy', '1')).toBe(false)
  })
})

test('an ecosystem matches with and without its release', () => {
  const meant: [string, string][] = [
    ['Debian:12', 'Debian'],
    ['Alpine:v3.18', 'Alpine'],
    ['Ubuntu:22.04:LTS', 'Ubuntu:22.04'],
    ['Ubuntu:22.04', 'Ubuntu:22.04:LTS'],
    ['Ubuntu:Pro:18.04:LTS', 'Ubuntu:18.04'],
    ['Root:Ubuntu:22.04', 'Root:Ubuntu'],
    ['Red Hat:enterprise_linux:8::appstream', 'Red Hat'],
    ['Red Hat:rhel_eus:9.2::appstream', 'Red Hat:rhel_eus:9.2'],
    ['Ubuntu:22.04:LTS', 'Ubuntu:jammy'],
    ['Debian', 'Debian:12'],
  ]
  expect(meant.filter(([recorded, asked]) => !isMeant(recorded, asked))).toEqual([])
  const other: [string, string][] = [
    ['Red Hat:jboss_core_services:1', 'Red Hat:rhel_eus:9.2::appstream'],
    ['Red Hat:jboss_core_services:1', 'Red Hat:enterprise_linux:9::appstream'],
    ['Red Hat:rhel_eus:9.2::baseos', 'Red Hat:rhel_eus:9.2::appstream'],
    ['Debian:12', 'Debian:1'],
    ['Ubuntu:18.04:LTS', 'Ubuntu:Pro:18.04:LTS'],
    ['Root:Debian:12', 'Debian:12'],
    ['Red Hat:enterprise_linux:8::appstream', 'Red Hat:enterprise_linux'],
  ]
  expect(other.filter(([recorded, asked]) => isMeant(recorded, asked))).toEqual([])
})

const REAL = '../shared/data/osv-real.zip'

/** In the long suite alone, where the records are there. */
const describeReal = LONG ? describe.skipIf(!existsSync(REAL)) : (): void => undefined

describeReal('real records', () => {
  interface Real {
    id: string
    withdrawn?: string
    affected?: {
      package?: { ecosystem: string; name: string }
      versions?: string[]
      ranges?: { type: string; events: Event[] }[]
    }[]
  }

  bothTest('of PyPI have ranges that contain each version in their lists', () => {
    const records = new AdmZip(REAL)
      .getEntries()
      .filter(({ entryName }) => /^PYSEC-202[01]/.test(entryName))
      .map((entry) => JSON.parse(entry.getData().toString()) as Real)
      .filter(({ withdrawn }) => withdrawn === undefined)
    let compared = 0
    const missed: string[] = []
    for (const { id, affected = [] } of records) {
      for (const { package: package_, versions = [], ranges = [] } of affected) {
        const own = ranges.filter(({ type }) => type === 'ECOSYSTEM')
        if (package_?.ecosystem !== 'PyPI' || own.length === 0) continue
        const record = { affected: [{ package: package_, ranges: own }] }
        for (const version of versions) {
          if (findEcosystem('PyPI')?.order?.read(version) === null) continue
          compared++
          if (!isAffected(record, 'PyPI', package_.name, version)) missed.push(`${id} ${version}`)
        }
      }
    }
    expect(compared).toBeGreaterThan(1000)
    expect(missed.length / compared).toBeLessThan(0.01)
  })
})

test('events of a range are evaluated by their versions, in any order in the record', () => {
  const events = [{ fixed: '3.0.0' }, { introduced: '2.0.0' }, { introduced: '0' }, { fixed: '1.0.0' }]
  const orders = [events, [...events].reverse(), [events[2], events[0], events[3], events[1]]]
  for (const order of orders) {
    const ranges = [{ type: 'SEMVER', events: order }]
    const record = { affected: [{ package: { ecosystem: 'npm', name: 'p' }, ranges }] }
    const of = (version: string) => isAffected(record, 'npm', 'p', version)
    expect(['0.9.0', '1.0.0', '1.9.0', '2.0.0', '2.9.0', '3.0.0'].map(of)).toEqual([
      ...[true, false, false, true, true, false],
    ])
  }
})

describe('what cannot be compared with a version is not taken for clear', () => {
  const from = (introduced: string, fixed: string) => [{ introduced }, { fixed }]

  test('in an ecosystem without an order of versions, also where the record lists other versions beside its range', () => {
    const record = ranged('ConanCenter', from('0', '1.2.12'))
    expect(verdict(record, 'ConanCenter', '1.2.11')).toBe('no_order')
    const listed = ranged('ConanCenter', from('0', '1.2.12'), { versions: ['1.2.10'] })
    expect(verdict(listed, 'ConanCenter', '1.2.10')).toBe('affected')
    expect(verdict(listed, 'ConanCenter', '1.2.11')).toBe('no_order')
    const only = ranged('ConanCenter', [], { ranges: [], versions: ['1.2.10'] })
    expect(verdict(only, 'ConanCenter', '1.2.11')).toBe('clear')
    const compared = { type: 'SEMVER', events: from('0', '1.2.10') }
    const other = { type: 'ECOSYSTEM', events: from('0', '1.2.12') }
    expect(verdict(ranged('ConanCenter', [], { ranges: [compared, other] }), 'ConanCenter', '1.2.11')).toBe('no_order')
    const semver = [{ type: 'SEMVER', events: from('0', '1.2.12') }]
    expect(verdict(ranged('ConanCenter', [], { ranges: semver }), 'ConanCenter', '2.0.0')).toBe('clear')
  })

  test('by a record of commits alone, or of nothing', () => {
    const commits = { ranges: [{ type: 'GIT', events: from('0', 'abc') }] }
    expect(verdict(ranged('npm', [], commits), 'npm', '1.0.0')).toBe('commits')
    expect(verdict(ranged('npm', [], { ...commits, versions: ['2.0.0'] }), 'npm', '1.0.0')).toBe('clear')
    const both = [...commits.ranges, { type: 'ECOSYSTEM', events: from('0', '1.0.0') }]
    expect(verdict(ranged('npm', [], { ranges: both }), 'npm', '1.0.0')).toBe('clear')
    expect(verdict(ranged('npm', [], { ranges: [] }), 'npm', '1.0.0')).toBe('no_versions')
  })

  test('where the order cannot read the version', () => {
    expect(verdict(ranged('npm', from('0', '2.0.0')), 'npm', 'workspace:1')).toBe('version')
    const listed = ranged('npm', from('0', '2.0.0'), { versions: ['1.0.0'] })
    expect(verdict(listed, 'npm', 'workspace:1')).toBe('version')
  })

  test('where a bound that decides cannot be read', () => {
    const open = ranged('npm', from('1.0.0', 'unknown'))
    expect(verdict(open, 'npm', '2.0.0')).toBe('bounds')
    expect(verdict(open, 'npm', '0.9.0')).toBe('clear')
    const unbegun = ranged('npm', from('unknown', '3.0.0'))
    expect(verdict(unbegun, 'npm', '2.0.0')).toBe('bounds')
    const confirmed = ranged('npm', [...from('1.0.0', '3.0.0'), { fixed: 'unknown' }])
    expect(verdict(confirmed, 'npm', '2.0.0')).toBe('affected')
    const compared = { type: 'SEMVER', events: from('0', '1.0.0') }
    const other = { type: 'ECOSYSTEM', events: from('1.5.0', 'unknown') }
    expect(verdict(ranged('npm', [], { ranges: [compared, other] }), 'npm', '2.0.0')).toBe('bounds')
  })

  test('a version behind the end of a range that calls a later one affected is not clear', () => {
    const record = ranged('PyPI', [{ introduced: '0' }, { last_affected: '0.8.0' }, { last_affected: '0.8.2' }])
    const said = ['0.8.0', '0.8.1', '0.8.2', '0.8.3'].map((version) => verdict(record, 'PyPI', version))
    expect(said).toEqual(['affected', 'bounds', 'bounds', 'clear'])
  })

  test('a version between two fixed ones is clear where it continues the first one alone', () => {
    const [vendor, upstream] = ['3.0.15-1~deb12u1.root.io.2', '3.0.16-1~deb12u1'] as const
    const record = ranged('Debian:12', [{ fixed: upstream }, { introduced: '0' }, { fixed: vendor }])
    const said = (version: string) => verdict(record, 'Debian:12', version)
    expect(['3.0.15-1~deb12u1', '3.0.15-1~deb12u1.root.io.1'].map(said)).toEqual(['affected', 'affected'])
    expect([vendor, '3.0.15-1~deb12u1.root.io.10', upstream, '3.0.17-1~deb12u1'].map(said)).toEqual(
      Array.from({ length: 4 }, () => 'clear'),
    )
    expect(['3.0.15-1~deb12u2', '3.0.15-1~deb12u2.root.io.3'].map(said)).toEqual(['bounds', 'bounds'])
    const branches = ranged('PyPI', [{ introduced: '0' }, { fixed: '1.0' }, { fixed: '1.1.2' }])
    expect(['0.9', '1.0.0', '1.0.1', '1.1.1', '1.1.2'].map((version) => verdict(branches, 'PyPI', version))).toEqual([
      ...['affected', 'clear', 'bounds', 'bounds', 'clear'],
    ])
    const mixed = ranged('npm', [{ introduced: '1.0.0' }, { last_affected: '1.5.0' }, { fixed: '2.0.0' }])
    expect(['0.9.0', '1.5.0', '1.6.0', '2.0.0'].map((version) => verdict(mixed, 'npm', version))).toEqual([
      ...['clear', 'affected', 'bounds', 'clear'],
    ])
    const unbegun = ranged('npm', [{ fixed: '1.0.0' }, { introduced: '2.0.0' }, { fixed: '2.1.0' }])
    expect(verdict(unbegun, 'npm', '0.5.0')).toBe('bounds')
  })

  test.each<[what: string, events: unknown]>([
    ['nothing', undefined],
    ['an empty list', []],
    ['no list', { introduced: '0' }],
    ['a fix alone', [{ fixed: '2.0.0' }]],
    ['a last version alone', [{ last_affected: '2.0.0' }]],
    ['a limit alone', [{ limit: '2.0.0' }]],
    ['an introduction without a version', [{ introduced: '' }, { fixed: '2.0.0' }]],
  ])('where a range does not say where it begins, alone and beside listed versions: %s', (_, events) => {
    const ranges = [{ type: 'SEMVER', events }]
    for (const more of [{ ranges }, { ranges, versions: ['9.0.0'] }])
      for (const version of ['1.0.0', '3.0.0']) expect(verdict(ranged('npm', [], more), 'npm', version)).toBe('bounds')
  })

  test.each<[what: string, more: object]>([
    ['versions that are no texts', { versions: [1], ranges: [] }],
    ['a version that is empty', { versions: ['1.0.0', ''], ranges: [] }],
    ['versions that are no list', { versions: { a: '1.0.0' }, ranges: [] }],
    ['ranges that are no list', { versions: ['1.0.0'], ranges: { type: 'SEMVER', events: from('0', '9.0.0') } }],
    ['a range that is none', { versions: ['1.0.0'], ranges: ['0 to 9'] }],
    [
      'a range of a type that is not known',
      { versions: ['1.0.0'], ranges: [{ type: 'X', events: from('0', '9.0.0') }] },
    ],
  ])('where what a record lists cannot be read: %s', (_, more) => {
    expect(verdict(ranged('npm', [], more), 'npm', '2.0.0')).toBe('bounds')
  })

  test('but a record of another package, or one that is withdrawn, says nothing at all', () => {
    const record = ranged('ConanCenter', from('0', '1'))
    expect(verdict(record, 'ConanCenter', '1', 'q')).toBe('other')
    const withdrawn = { ...record, withdrawn: '2026-01-01T00:00:00Z' }
    expect(verdict(withdrawn, 'ConanCenter', '1')).toBe('other')
  })

  test('and a record with several elements is affected by any, else uncompared by any', () => {
    const [first] = ranged('npm', from('0', 'unknown')).affected as object[]
    const [second] = ranged('npm', from('5.0.0', '6.0.0')).affected as object[]
    for (const affected of [
      [first, second],
      [second, first],
    ]) {
      expect(verdict({ affected }, 'npm', '5.5.0')).toBe('affected')
      expect(verdict({ affected }, 'npm', '2.0.0')).toBe('bounds')
    }
  })
})
