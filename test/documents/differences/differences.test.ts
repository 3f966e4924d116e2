import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import type { RecordDifference } from '../../../src/documents/differences/difference.ts'
import { differencesOf as compare } from '../../../src/documents/differences/differences.ts'
import { differenceWords } from '../../../src/documents/differences/words.ts'
import { concerns } from '../../../src/features/scanners/records/affected.ts'
import { askVersion } from '../../../src/features/scanners/records/ranges.ts'
import { findEcosystem } from '../../../src/base/versions/ecosystems.ts'
import { type Model, applied, differencesOf, pair, plain, recordOf } from './pairs.ts'

type Events = Record<string, string>[]

/** A record about one package with one range of type ECOSYSTEM. */
const about = (ecosystem: string, events: Events, more: object = {}, type = 'ECOSYSTEM') => ({
  id: 'R-1',
  modified: '2026-01-01T00:00:00Z',
  affected: [{ package: { ecosystem, name: 'one' }, ranges: [{ type, events }] }],
  ...more,
})
const from0 = (fixed: string): Events => [{ introduced: '0' }, { fixed }]
const kinds = (before: unknown, after: unknown) => differencesOf(before, after).map(({ kind }) => kind)
const words = (before: unknown, after: unknown) => differencesOf(before, after).map(differenceWords)

describe('the differences of two versions of a record', () => {
  longTest('applied to one give the other, in every aspect that is judged', () => {
    fc.assert(
      fc.property(pair, fc.boolean(), ([before, after], split) => {
        const found = differencesOf(recordOf(before), recordOf(after, split))
        expect(applied(before, found)).toEqual(plain(after))
        const empty: Model = { withdrawn: null, aliases: [], severity: [], packages: {} }
        const [first, ...rest] = differencesOf(null, recordOf(after))
        expect([first?.kind, applied(empty, rest)]).toEqual(['record_added', plain(after)])
        expect(differencesOf(recordOf(after), recordOf(after))).toEqual([])
      }),
      { numRuns: 150 },
    )
  })

  test.each([
    ['npm', '1.10.0', '1.9.0', 'fix_lowered', 'range_narrowed'],
    ['npm', '1.9.0', '1.10.0', 'fix_raised', 'range_widened'],
    ['Debian:12', '1.0~rc1-1', '1.0-1', 'fix_raised', 'range_widened'],
    ['PyPI', '2.0', '2.0rc1', 'fix_lowered', 'range_narrowed'],
    ['PyPI', '2.0', '2.0.0', 'fix_changed', 'range_rewritten'],
    ['npm', '1.0.0', 'soon', 'fix_changed', 'range_changed'],
    ['Homebrew', '2', '1', 'fix_changed', 'range_changed'],
    ['Nobody knows', '2', '1', 'fix_changed', 'range_changed'],
  ])('of %s, fixed in %s and then in %s, are %s and %s', (ecosystem, one, other, fix, range) => {
    expect(kinds(about(ecosystem, from0(one)), about(ecosystem, from0(other)))).toEqual([fix, range])
  })

  test('name the package that a package URL alone names', () => {
    const of = (purl: string, fixed: string) => ({
      affected: [{ package: { purl }, ranges: [{ type: 'ECOSYSTEM', events: from0(fixed) }] }],
    })
    expect(kinds(of('pkg:pypi/one', '2.0'), of('pkg:pypi/one', '1.0'))).toEqual(['fix_lowered', 'range_narrowed'])
    expect(kinds(of('pkg:pypi/one', '2.0'), of('pkg:pypi/two', '2.0'))).toEqual(
      expect.arrayContaining(['package_added', 'package_removed']),
    )
  })

  test('never order what is no text', () => {
    const of = (fixed: unknown) => ({
      affected: [
        {
          package: { ecosystem: 'Red Hat', name: 'one' },
          ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
        },
      ],
    })
    expect(words(of('5'), of(5))).toEqual([
      'Red Hat one: fix changed from 5 to 5 (no text)',
      'Red Hat one: affected range changed from [>= 0 < 5] to [>= 0 < 5 (no text)]',
    ])
    expect(kinds(of(5), of(4))).toEqual(['fix_changed', 'range_changed'])
  })

  test('never order commits', () => {
    const commit = (fixed: string) => about('npm', from0(fixed), {}, 'GIT')
    expect(kinds(commit('2'.repeat(40)), commit('1'.repeat(40)))).toEqual(['fix_changed', 'range_changed'])
  })

  test('pair fixes by the version from which they count', () => {
    const branches = (first: string, second: string): Events => [
      ...[{ introduced: '1.0.0' }, { fixed: first }],
      ...[{ introduced: '2.0.0' }, { fixed: second }],
    ]
    const found = words(about('npm', branches('1.4.2', '2.3.0')), about('npm', branches('1.4.3', '2.2.9')))
    expect(found).toEqual([
      'npm one: fix raised from 1.4.2 to 1.4.3',
      'npm one: fix lowered from 2.3.0 to 2.2.9',
      'npm one: affected range changed from [>= 1.0.0 < 1.4.2, >= 2.0.0 < 2.3.0] to [>= 1.0.0 < 1.4.3, >= 2.0.0 < 2.2.9]',
    ])
    expect(words(about('npm', [{ introduced: '0' }]), about('npm', from0('1.2.3')))).toEqual([
      'npm one: fix added: 1.2.3',
      'npm one: affected range narrowed from [>= 0] to [>= 0 < 1.2.3]',
    ])
  })

  longTest('say which versions are affected as queries do', () => {
    const version = fc.tuple(fc.nat(2), fc.nat(2)).map((parts) => `${parts.join('.')}.0`)
    const events = fc.array(
      fc
        .tuple(fc.constantFrom('introduced', 'fixed', 'last_affected', 'limit'), version)
        .map(([kind, text]) => ({ [kind]: text })),
      { maxLength: 5 },
    )
    const all = [0, 1, 2].flatMap((x) => [0, 1, 2].flatMap((y) => [`${x}.${y}.0`, `${x}.${y}.5`]))
    const affectedBy = (record: object) =>
      all.filter((text) => {
        const ecosystem = findEcosystem('npm')
        if (ecosystem === null) throw new Error('npm is an ecosystem')
        const steps = concerns(record, { ecosystem, name: 'one', version: askVersion(text) })
        for (;;) {
          const step = steps.next()
          if (step.done === true) return step.value === 'affected'
        }
      })
    fc.assert(
      fc.property(events, events, (one, other) => {
        fc.pre(one.length > 0 && other.length > 0)
        const before = about('npm', one)
        const after = about('npm', other)
        const found = kinds(before, after).find((kind) => kind.startsWith('range_'))
        const old = new Set(affectedBy(before))
        const now = new Set(affectedBy(after))
        if (found === undefined || found === 'range_rewritten') expect(now).toEqual(old)
        if (found === 'range_widened') expect([...old].filter((one) => !now.has(one))).toEqual([])
        if (found === 'range_narrowed') expect([...now].filter((one) => !old.has(one))).toEqual([])
        if (found === 'range_changed')
          expect(now.size > 0 && old.size > 0 && [...now].join() === [...old].join()).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  test('name every other change: withdrawal, aliases, severity, texts, the stamp alone', () => {
    const base = about('npm', from0('1.0.0'))
    const of = (more: object) => words(base, { ...base, ...more })
    expect(of({ withdrawn: '2026-02-01T00:00:00Z' })).toEqual(['withdrawn (2026-02-01T00:00:00Z)'])
    expect(words({ ...base, withdrawn: 'x' }, base)).toEqual(['no longer withdrawn'])
    expect(of({ aliases: ['CVE-1', 'CVE-2'] })).toEqual(['aliases added: CVE-1, CVE-2'])
    expect(of({ database_specific: { severity: 'HIGH', x: 1 } })).toEqual([
      'severity added (database_specific): HIGH',
      'other fields changed: "database_specific"',
    ])
    expect(of({ severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N' }] })).toEqual([
      'severity added (CVSS_V3): CVSS:3.1/AV:N',
    ])
    expect(of({ details: 'new', references: [], modified: '2025-01-01T00:00:00Z' })).toEqual([
      'other fields changed: "details", "references"',
    ])
    expect(of({ modified: '2025-01-01T00:00:00Z' })).toEqual([
      'only the date of modification changed from 2026-01-01T00:00:00Z to 2025-01-01T00:00:00Z',
    ])
    expect(words(base, null)).toEqual(['record removed'])
    expect(words(base, { ...base, affected: [] })).toEqual(['npm one: package removed'])
    expect(
      kinds(about('PyPI', [], {}), {
        ...about('PyPI', []),
        affected: [{ package: { ecosystem: 'PyPI', name: 'ONE' }, ranges: [{ type: 'ECOSYSTEM', events: [] }] }],
      }),
    ).toEqual(['other_changed'])
  })

  const NUMBER = '12345678901234567890'
  const DEEP = (inner: string) => `${'['.repeat(100_000)}${inner}${']'.repeat(100_000)}`
  test.each([
    ['severity', '"severity":[{"type":"CVSS_V3","score":9.8}]', '"severity":[{"type":"CVSS_V3","score":1.0}]'],
    [
      'affected',
      '"affected":[{"package":{"name":"a"},"ecosystem_specific":{"x":1}},{"package":{"name":"b"}}]',
      '"affected":[{"package":{"name":"a"}},{"package":{"name":"b"},"ecosystem_specific":{"x":1}}]',
    ],
    [
      'affected',
      '"affected":[{"ranges":[{"type":"GIT","events":[{"other":"1"}]}]}]',
      '"affected":[{"ranges":[{"type":"GIT","events":[{"other":"2"}]}]}]',
    ],
    ['withdrawn', '"id":"a"', '"id":"a","withdrawn":true'],
    ['aliases', '"aliases":["a"]', '"aliases":["a",{"id":"b"}]'],
    ['aliases', '"aliases":["a","b"]', '"aliases":["b","a"]'],
    ['database_specific', `"database_specific":{"n":${NUMBER}1}`, `"database_specific":{"n":${NUMBER}2}`],
    ['details', `"details":${DEEP('1')}`, `"details":${DEEP('2')}`],
    ['details', '"details":1,"details":3', '"details":2,"details":3'],
    ['published', '"published":null', '"id":"a"'],
  ])('never say that only the date changed where %s did: %.60s', (name, one, other) => {
    const read = (text: string) => ({ text, json: JSON.parse(text) as unknown })
    const of = (fields: string, day: number) => read(`{"modified":"2026-01-0${day}",${fields}}`)
    const found = compare(of(one, 1), of(other, 2))
    expect(found.map(({ kind }) => kind)).toEqual(['other_changed'])
    expect(found[0]).toHaveProperty('fields', expect.arrayContaining([name]))
    const spaced = read(
      `{ ${one.startsWith('"details":1') ? one : one.replace(':', ' : ')} , "\\u006dodified":"2026-01-02" }`,
    )
    expect(compare(of(one, 1), spaced)).toEqual([{ kind: 'modified_only', from: '2026-01-01', to: '2026-01-02' }])
    expect(compare(of(one, 2), spaced)).toEqual([])
  })

  test('name what no kind describes beside what one does', () => {
    const base = { ...about('npm', from0('1.0.0')), aliases: ['a'], severity: [{ type: 'x', score: 1 }] }
    const moved = {
      ...about('npm', from0('2.0.0')),
      aliases: ['b', 1],
      severity: [
        { type: 'x', score: 2 },
        { type: 'x', score: 'HIGH' },
      ],
    }
    expect(differencesOf(base, moved).at(-1)).toEqual({ kind: 'other_changed', fields: ['aliases', 'severity'] })
    expect(kinds(base, { ...base, ...about('npm', from0('2.0.0')) })).toEqual(['fix_raised', 'range_widened'])
  })

  longTest('are found in whatever JSON a record is, in bounded words', () => {
    const deep = '['.repeat(1000) + ']'.repeat(1000)
    const hostile: unknown[] = [
      ...[7, 'text', [], { affected: 3 }, { affected: [null, 1, { package: null, ranges: [1, { events: 'x' }] }] }],
      ...[
        {
          affected: [
            {
              package: { ecosystem: {}, name: [] },
              versions: [1, null],
              ranges: [{ type: 1, events: [{ fixed: {} }] }],
            },
          ],
        },
      ],
      { aliases: { length: 2 }, severity: 'HIGH', withdrawn: 5, database_specific: [] },
      { details: JSON.parse(deep) as unknown, ['__proto__']: 1 },
      about('npm\n\u001b[2J', from0('9'.repeat(5000))),
      about(
        'npm',
        Array.from({ length: 4100 }, (_, i) => ({ fixed: `${i}.0.0` })),
      ),
    ]
    const texts = hostile.flatMap((one) => [null, ...hostile].flatMap((other) => words(other, one)))
    expect(texts.filter((text) => text.length > 2000 || /\p{Cc}/u.test(text))).toEqual([])
    expect(texts.length).toBeGreaterThan(1000)
    fc.assert(
      fc.property(fc.json(), fc.json(), (one, other) => {
        const found: RecordDifference[] = differencesOf(JSON.parse(one), JSON.parse(other))
        expect(found.map(differenceWords)).toEqual(expect.any(Array))
      }),
      { numRuns: 50 },
    )
  })
})
