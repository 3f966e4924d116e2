import { expect, test } from 'vitest'
import { stripPrefix } from '../../../../../src/features/scanners/views/osv/ecosystems.ts'
import { instantOf, stampOf } from '../../../../../src/base/time.ts'

const VENDORS = new Set(['Root', 'Other Vendor', 'Bitnami'])

test.each<[string, ...string[]]>([
  ['Root:Debian:12', 'Debian:12'],
  ['Root:Debian:12.5', 'Debian:12'],
  ['Root:Debian:bookworm', 'Debian:12'],
  ['Root:Debian:sid', 'Debian:sid'],
  ['Root:Alpine:3.18', 'Alpine:v3.18'],
  ['Root:Alpine:v3.18', 'Alpine:v3.18'],
  ['Root:Alpine:3.18.4', 'Alpine:v3.18'],
  ['Root:Alpine:edge', 'Alpine:edge'],
  ['Root:Ubuntu', 'Ubuntu'],
  ['Root:Ubuntu:22.04', 'Ubuntu:22.04', 'Ubuntu:22.04:LTS'],
  ['Root:Ubuntu:22.04:LTS', 'Ubuntu:22.04', 'Ubuntu:22.04:LTS'],
  ['Root:Ubuntu:22.04.3', 'Ubuntu:22.04', 'Ubuntu:22.04:LTS'],
  ['Root:Ubuntu:jammy', 'Ubuntu:22.04', 'Ubuntu:22.04:LTS'],
  ['Root:Ubuntu:28.04', 'Ubuntu:28.04', 'Ubuntu:28.04:LTS'],
  ['Root:Ubuntu:23.04', 'Ubuntu:23.04'],
  ['Root:Ubuntu:24.10', 'Ubuntu:24.10'],
  ['Root:Ubuntu:Pro:22.04:LTS', 'Ubuntu:Pro:22.04:LTS'],
  ['Root:Ubuntu:Pro:FIPS-updates:22.04:LTS', 'Ubuntu:Pro:FIPS-updates:22.04:LTS'],
  ['Root:npm', 'npm'],
  ['Root:PyPI', 'PyPI'],
  ['Root:Maven', 'Maven'],
  ['Root:Maven:https://repo.example.com', 'Maven:https://repo.example.com'],
  ['Other Vendor:Rocky Linux:9', 'Rocky Linux:9'],
])('the ecosystem %s without the vendor’s prefix is %s', (ecosystem, ...expected) => {
  const [prefix, base] = ecosystem.split(':')
  expect(stripPrefix(ecosystem, VENDORS)).toEqual({ prefix, base, ecosystems: expected })
})

test.each([
  'Debian:12',
  'npm',
  '',
  ':npm',
  'Root',
  'Root:',
  'Root:NPM', // names of ecosystems are exact
  'Root:something:1',
  'A:Root:Debian:12', // a prefix before a prefix is nobody's rule
  'Red Hat:enterprise_linux:9::baseos',
  'SUSE:Linux Enterprise Server 15 SP5',
  'Bitnami:npm', // an ecosystem of its own is no vendor's prefix
  'Maven:https://repo.example.com',
  'Docker Hardened Images:Alpine:3.24', // of a vendor that the settings do not name
  'TuxCare:npm',
  'root:npm',
])('the ecosystem %j has no vendor’s prefix', (ecosystem) => {
  expect(stripPrefix(ecosystem, VENDORS)).toBeNull()
})

test.each([
  ['2026-05-01T00:00:00Z', '2026-05-01T00:00:00Z'],
  ['2026-05-01', '2026-05-01T00:00:00Z'],
  ['2026-05-01T02:30:00+02:00', '2026-05-01T00:30:00Z'],
  ['2026-05-01T00:00:00-0130', '2026-05-01T01:30:00Z'],
  ['2026-05-01 00:00', '2026-05-01T00:00:00Z'],
  ['2026-05-01T00:00:00.120Z', '2026-05-01T00:00:00.12Z'],
  ['2026-05-01t00:00:00.123456789z', '2026-05-01T00:00:00.123456789Z'],
  ['2026-05-01T00:00:00.1234567891Z', '2026-05-01T00:00:00.123456789Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
  ['2026-12-31T23:59:60Z', '2027-01-01T00:00:00Z'],
])('the date %s is written as %s', (stamp, expected) => {
  expect(stampOf(instantOf(stamp))).toBe(expected)
})

test.each(['', 'soon', '2026-13-01', '2026-02-30', '26-05-01', '2026-05-01T25:00Z', 5, null, {}])(
  'the stamp %j is no time, and comes last',
  (stamp) => {
    expect(instantOf(stamp)).toBe('')
    expect(stampOf('')).toBe('0001-01-01T00:00:00Z')
  },
)

test('normalized dates sort as text, whatever form they had', () => {
  const stamps = ['2026-05-01T00:00:00.1Z', '2026-05-01', '2026-04-30T23:00:00-02:00', '2025-01-01']
  const sorted = stamps.map(instantOf).sort().map(stampOf)
  expect(sorted).toEqual([
    '2025-01-01T00:00:00Z',
    '2026-05-01T00:00:00Z',
    '2026-05-01T00:00:00.1Z',
    '2026-05-01T01:00:00Z',
  ])
})
