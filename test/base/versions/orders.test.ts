import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { findEcosystem } from '../../../src/base/versions/ecosystems.ts'
import type { VersionOrder } from '../../../src/base/versions/order.ts'
import { bothTest, LONG, test } from '../../support/tables.ts'

function orderOf(ecosystem: string): VersionOrder {
  const order = findEcosystem(ecosystem)?.order
  if (order === null || order === undefined) throw new Error(`no order for ${ecosystem}`)
  return order
}

/** `<`, `=` or `>`; `?` when one of them cannot be read. */
function relation(order: VersionOrder, one: string, other: string): string {
  const a = order.read(one)
  const b = order.read(other)
  if (a === null || b === null) return '?'
  return signOf(order.compare(a, b))
}

function signOf(difference: number): string {
  if (difference < 0) return '<'
  return difference > 0 ? '>' : '='
}

/** Each row is in ascending order; `=` joins different texts for one version. */
const ROWS: Record<string, readonly string[]> = {
  Debian: [
    '1.0~~ 1.0~~a 1.0~ 1.0 1.0a 1.0+b 1.0.1',
    '1.2.3-1~bpo11+1 1.2.3-1 1.2.3-1+b1 1.2.3-1.1 1.2.3-10 1.2.4~rc1-1 1.2.4-1',
    '9:1 10:0~',
    '1.0=1.0-0=0:1.0=1.00 1.0-1',
    '2.4-3+deb12u1 2.4-3+deb12u1.root.io.1 2.4-3+deb12u1.root.io.2 2.4-3+deb12u1.root.io.10 2.4-3+deb12u2',
    '2.4 1:2.4-3+deb12u1.root.io.2',
    '1:1.2:3-1 1:1.2:4-1',
    '20230101000000000000000000001 20230101000000000000000000002',
  ],
  Ubuntu: ['1.18.0-0ubuntu1 1.18.0-0ubuntu1.2 1.18.0-0ubuntu2~20.04 1.18.0-0ubuntu2'],
  Alpine: [
    '1.2.3_alpha 1.2.3_alpha2 1.2.3_beta 1.2.3_pre 1.2.3_rc1 1.2.3 1.2.3_cvs 1.2.3_svn 1.2.3_git 1.2.3_hg 1.2.3_p1',
    '8.1-r1 8.1-r9 8.1-r10 8.1-r00071 8.1-r10071',
    '1.2 1.2-r1 1.2a 1.2b 1.2.0 1.2.1 1.10',
    '1.05 1.1',
    '1.2_git20230101 1.2_git20230101-r1 1.2_git20230101~1a2b 1.2_git20230101~1a2c-r0',
    '1.2_rc1 1.2_rc1_p1 1.2 1.2_p1_rc1 1.2_p1',
    '1.8.28 1.8.28-r1 1.8.28p1-r1 1.8.28p2-r0 1.8.29-r1', // as apk-tools 2 read them
    '3.0.8 3.0.8-r0 3.0.8-r1 3.0.9-r0 3.1.0_git20230101 3.1.0_git20230101-r1',
  ],
  Wolfi: ['1.36.0-r0 1.36.0-r1 1.36.1-r0'],
  PyPI: [
    '1.0.dev1 1.0a1.dev1 1.0a1 1.0b2 1.0rc1=1.0c1=1.0-RC.1 1.0=1.0.0=v1.0 1.0+abc.5 1.0+abc.7 1.0+5 1.0.post1.dev1 1.0.post1=1.0-1 1.1',
    '2012.4 1!0.1',
    '4.0.1 4.0.1+root.io.1 4.0.1+root.io.2 4.0.1+root.io.10 4.0.2',
  ],
  Maven: [
    '1-alpha-1=1a1 1-alpha-2 1-beta-1=1b1 1-milestone-1=1m1 1-rc-1=1cr1 1-SNAPSHOT 1=1.0=1-ga=1.0.0-final=1-release 1-sp 1-sp-1 1-foo 1-1 1.1',
    '4.2.1-SNAPSHOT 4.2.1 4.2.1-root.io.1 4.2.1-root.io.2 4.2.1-root.io.10 4.2.2',
    '2.0.0.RELEASE=2.0 2.0.1.RELEASE',
    '9.0.0.M1=9.0.0-M1 9.0.0.M9 9.0.0-M11 9.0.0',
    '1.0.0.RC1=1.0.0-RC1 1.0.0-RC2 1.0.0.RC3 1.0.0',
    '9.4.0.v20180101 9.4.0.v20190101 9.4.1',
    '1.0.20230101000000000000000001 1.0.20230101000000000000000002',
  ],
  npm: [
    '1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0=v1.0.0=1.0=1=1.0.0+build 1.0.1 1.2 1.10.0',
    '4.2.1-root.io.1 4.2.1',
  ],
  Go: [
    'go1.20.5=1.20.5 go1.21beta1=1.21.0-beta.1 1.21rc2=1.21.0-rc.2 go1.21rc10 go1.21=1.21.0 go1.21.1',
    '0.0.0-20190101000000-aaaaaaaaaaaa 0.0.0-20200101000000-aaaaaaaaaaaa 0.1.0=v0.1.0+incompatible 1.0.0',
  ],
  Hex: ['1.0.0-rc.1 1.0.0 1.0.1'],
  'GitHub Actions': ['v4.0.0-rc.1 v4=4.0.0=v4.0 v4.1.2 v4.10.0 v5'],
  Julia: [
    '1.2.3-rc1=1.2.3rc1 1.2.3=v1.2.3 1.2.3+0 1.2.3+2 1.2.3+10 1.2.3+a 1.2.4',
    '4.3.0+1 4.3.1+0 4.3.1+1 4.3.1+2 4.3.2+0 4.4.0+0',
  ],
  Bitnami: ['1.2.3=1.2.3+1 1.2.3-0 1.2.3-4 1.2.3-10 1.2.3-debian-12-r4 1.2.3-r4 1.2.4'],
  'crates.io': ['1.0.0-20240101000000000001 1.0.0-20240101000000000002 1.0.0', '0.8.0-alpha 0.8.0 0.8.7 0.10.0'],
  Pub: ['1.0.0-pre 1.0.0-pre+1 1.0.0 1.0.0+1 1.0.0+2'],
  NuGet: [
    '1.0.0-ALPHA=1.0.0-alpha 1.0.0-alpha.1 1.0.0-beta 1.0.0=1.0=1.0.0.0=1.0.0+sha 1.0.0.1 1.0.1 1.10',
    '1.0.0--2 1.0.0--1 1.0.0-0=1.0.0--0 1.0.0-9 1.0.0-20240101123456 1.0.0-9999999999 1.0.0-a',
    '2.80.3-preview.9 2.80.3-preview.10 2.80.3=2.80.3.0',
  ],
  RubyGems: [
    '1.0.0.RC1 1.0.0.a9 1.0.0.a10 1.0.0.beta1 1.0.0.pre=1.0.0.pre.0 1.0.0.rc1 1.0.0=1=1.0 1.0.1 1.10',
    '2.0.0-1 2.0.0 2.0.0.1',
    '1.16.0.rc1-java=1.16.0.rc1 1.16.0-java=1.16.0=1.16.0-x86_64-linux-musl=1.16.0-arm64-darwin-23 1.16.1-x64-mingw-ucrt',
    // what @renovatebot/ruby-semver 5.0.0 orders otherwise: capitals, and numbers over 2^53
    '1.A 1.B 1.RC 1.a 1.aB 1.ab 1.rc 1.9007199254740992 1.9007199254740993 1.20240101000000000001 1.20240101000000000002',
  ],
  Packagist: [
    '1.0-dev 1.0-alpha1=1.0a1 1.0-beta2 1.0-RC1=1.0rc1 1.0=v1.0 1.0-p1=1.0pl1',
    '1.0-RC1 1.0=1.0.0=1.0.0.0=1.0.0+build=1.0@stable 1.0.1 1.10',
    '2.1.0-beta.2 2.1.0 2.1.9 2.1.x-dev 2.x-dev',
    '2023-01-02 2023.01.02=2023.01.02.0 2023.01.02.1 20230102',
  ],
  'Red Hat': [
    '0:1.0~rc1-1.el8 0:1.0-1.el8=1.0-1.el8=(none):1.0-1.el8 0:1.0^git1-1.el8 0:1.0.1-1.el8 0:1.10-1.el8 1:0.1-1.el8',
    '1.0a 1.0.1',
    '1.0 1.0-=1.0-. 1.0-0 1.0-1',
    '1.0 1.0-~rc1 1.0-',
    '2.0-1.el8_6 2.0-1.el8_10 2.0-2.el8',
  ],
  openSUSE: ['1.2-150300.3.1 1.2-150300.3.10 1.2-150400.1.1'],
  CRAN: ['1.2 1.2-3=1.2.3 1.2-3.1 1.10'],
  Hackage: ['1.0 1.0.0 1.0.1 1.0.10'],
  'Root:Debian:12': ['2.4-3 2.4-3.root.io.1'],
  'Root:Alpine:3.18': ['8.1-r5 8.1-r00071', '8.4.0-r0 8.4.0-r0.root.io.1 8.4.0-r0.root.io.2 8.4.0-r1'],
  'Root:RubyGems': [
    '7.0.0.rc1 7.0.0 7.0.0.root.io=7.0.0.root.io.0 7.0.0.root.io.1=7.0.0-root.io.1=7.0.0+root.io.1 7.0.0.root.io.2 7.0.1',
  ],
  'Root:NuGet': ['1.0.0-rc.1 1.0.0=1.0 1.0.0-root.io.1=1.0-rootio.1 1.0.0-root.io.10 1.0.1'],
  'Root:Packagist': ['1.0.0-beta1 1.0.0 1.0.0-root.io.1 1.0.0+root.io.2 1.0.1'],
  'Root:PyPI': ['4.0.1 4.0.1+root.io.1'],
  'Root:Maven': ['4.2.1 4.2.1-root.io.1'],
  'TuxCare:npm': ['1.0.2-rc.1 1.0.2 1.0.2-tuxcare.1 1.0.2-tuxcare.2 1.0.2-tuxcare.10 1.0.3-rc.1'],
  'Root:npm': [
    '4.2.0 4.2.1-rc.1 4.2.1 4.2.1-root.io.1=4.2.1+root.io.1 4.2.1-root.io.2 4.2.1-root.io.10 4.2.2-rc.1 4.2.2',
  ],
}

describe('the order of versions', () => {
  test.each(Object.keys(ROWS))('of %s agrees with its reference implementation', (ecosystem) => {
    const order = orderOf(ecosystem)
    const wrong: string[] = []
    for (const row of ROWS[ecosystem] ?? []) {
      const classes = row.split(' ').map((texts) => texts.split('='))
      const all = classes.flatMap((texts, rank) => texts.map((text) => ({ text, rank })))
      for (const one of all)
        for (const other of all) {
          const due = signOf(one.rank - other.rank)
          const is = relation(order, one.text, other.text)
          if (is !== due) wrong.push(`${one.text} ${is} ${other.text}, not ${due}`)
        }
    }
    expect(wrong).toEqual([])
  })

  const UNREADABLE: [ecosystem: string, texts: string[]][] = [
    ['Debian', ['', ' ', '1.0 2', '1_0', 'a:1', '1:', 'stable', 'v1.0', '1:v1.0']],
    ['Ubuntu', ['jammy', 'v1.0-1']],
    ['Alpine', ['', 'edge', '1.2-r1-r2', '1..2', '1.2_foo', '-r1', '1.2-r', '1.2~', '1.2~xyz']],
    ['PyPI', ['', '0.1-bulbasaur', 'dev', '1.0++']],
    ['Maven', ['', '1 2', '[1.0,2.0)', '(,1.0]', '[1.2]']],
    ['npm', ['', '(devel)', 'latest', '^1.0.0', '1.2.3.4', '1.0.0-', `1.${'9'.repeat(30)}.0`]],
    ['NuGet', ['', '1.2.3.4.5', 'x', '1.0-']],
    ['RubyGems', ['', 'a', '1..2', '1.0_2']],
    ['Packagist', ['', 'dev-main', '1 0', '1.#', '1.0#a1b2', '1.2.3.4.5', '1.0-foo']],
    ['GitHub Actions', ['', 'main', '8ade135a41bc03ea155e62e844d188df1ea18608', 'v4-', 'release/v1']],
    ['Julia', ['', 'x', '1.2.3.4']],
    ['Red Hat', ['', '-1', '1-2-3']],
    ['CRAN', ['', '1.a', '1.', '-1']],
    ['Root:npm', ['', '-root.io.1']],
  ]
  test.each(UNREADABLE)('of %s does not place an invalid version', (ecosystem, texts) => {
    const order = orderOf(ecosystem)
    expect(texts.filter((text) => order.read(text) !== null)).toEqual([])
  })

  test.each(['Maven', 'Debian:12', 'Rocky Linux:9', 'opam'])(
    'reads no text of %s that stands for no version',
    (name) => {
      const none = [
        'UNKNOWN',
        ' unknown ',
        'latest',
        'null',
        'None',
        'n/a',
        '${project.version}',
        '@VERSION@',
        '(devel)',
        'NOASSERTION',
        'main',
        'RELEASE',
        '*',
        '1.0-${revision}',
        '^1.0',
        '~> 1.0',
        '>=1.0',
        '<2.0',
        '[1.0,2.0)',
        '(,2.0]',
      ]
      expect(none.filter((text) => orderOf(name).read(text) !== null)).toEqual([])
      expect(orderOf(name).read('1.unknown')).not.toBeNull()
    },
  )

  bothTest('is antisymmetric and transitive for any versions', () => {
    const text = fc.oneof(
      fc.stringMatching(/^[0-9][0-9a-c.~+_-]{0,8}$/),
      fc.stringMatching(/^[0-2]([.-]?[0-2p#]){0,3}$/),
    )
    const sound = (order: VersionOrder, [a, b, c]: readonly string[]): void => {
      const keys = [a, b, c].map((one) => order.read(one ?? ''))
      if (keys.includes(null)) return
      const [x, y, z] = keys
      const sign = (one: unknown, other: unknown): number => Math.sign(order.compare(one, other))
      expect(sign(x, x)).toBe(0)
      expect(sign(x, y) + sign(y, x)).toBe(0)
      if (sign(x, y) <= 0 && sign(y, z) <= 0) expect(sign(x, z)).toBeLessThanOrEqual(0)
    }
    const names = ['Debian', 'PyPI', 'npm', 'NuGet', 'RubyGems', 'Red Hat', 'CRAN', 'Root:npm']
    // not Maven: 1 < 1.p < 1.0cr < 1
    for (const ecosystem of [...names, 'Packagist', 'Alpine', 'Pub', 'Julia', 'Bitnami', 'Go']) {
      const order = orderOf(ecosystem)
      const three = fc.array(text, { minLength: 3, maxLength: 3 })
      fc.assert(
        fc.property(three, (texts) => sound(order, texts)),
        { numRuns: LONG ? 300 : 100 },
      )
    }
  })
})

/** What makes a form without bounds go back and forth, or a reader make too many parts. */
const HOSTILE: readonly ((length: number) => string)[] = [
  ...['0', '-0', '.0', '-a', '~', '_p1', '-root.io.1', '1a', 'a1', '.1-', '-', ' ', 'v', '=', ':'].flatMap((part) => [
    (length: number) => '1' + part.repeat(length / part.length),
    (length: number) => '1' + part.repeat(length / part.length) + '\nx',
    (length: number) => part.repeat(length / part.length) + '!',
  ]),
  (length) => '1+' + ' '.repeat(length) + '\nx',
  (length) => '1-' + ' '.repeat(length) + '+\n!',
]

const ORDERED = ['npm', 'Pub', 'NuGet', 'Maven', 'AlmaLinux', 'Alpine', 'RubyGems', 'Debian'].concat(
  ...['Packagist', 'PyPI', 'CRAN', 'Root:npm', 'TuxCare:npm', 'Go', 'Julia', 'Bitnami'],
)

test.each(ORDERED)('the order of %s does not parse a text that is too long for a version', (ecosystem) => {
  const order = orderOf(ecosystem)
  for (const make of HOSTILE) {
    expect(order.read(make(60_000))).toBeNull()
    const short = order.read(make(200))
    if (short !== null) expect(order.compare(short, short)).toBe(0)
  }
  expect(order.read(`1.${'0'.repeat(254)}1`)).toBeNull()
  expect(order.read(' 1.2 \n')).not.toBeNull()
})
