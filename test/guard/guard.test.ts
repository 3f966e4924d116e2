import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { generateRecord } from '../../src/sandbox/feed/generate.ts'
import { telling } from '../support/tables.ts'
import { BENIGN, HOSTILE, judged, mutated } from './hostile.ts'

const RECORDS = Array.from({ length: 100 }, (_, i) => generateRecord({ seed: 1 }, i).bytes)

describe('a feed in which', () => {
  test.each(
    telling(
      HOSTILE,
      'the last number of fixes is one lower',
      'a gap opens below the fix, which stays',
      'versions of fixes cannot be read',
      'a package with a long name is added, and fixes are lowered',
      'fixes become a last affected version 0',
      'the first package alone changes its ecosystem',
      'every vector says no impact',
      'only id and date are left',
      'records are withdrawn',
      'records are modified in the year 9999',
    ),
  )('%s raises a doubt: %s', (_name, kind, mutate) => {
    const verdict = judged(
      RECORDS.map((one) => [one, mutated(one, mutate)] as const),
      100,
    )
    expect(`${verdict.refusal ?? ''} ${verdict.warning ?? ''}`).toContain(`(guard.${kind}`)
  })

  test.each(telling(BENIGN, 'a fix is raised', 'a date moves'))(
    '%s is believed',
    (_name, mutate) => {
      const verdict = judged(
        RECORDS.map((one) => [one, mutated(one, mutate)] as const),
        100,
      )
      expect(verdict).toMatchObject({ refusal: null, warning: null, lines: [], notCompared: 0 })
    },
  )
})

/** Records of one package, with these events and another ecosystem. */
const recordsOf = (ecosystem: string, events: readonly object[]): Buffer[] =>
  Array.from({ length: 30 }, (_, i) => {
    const affected = [
      { package: { ecosystem, name: 'p' }, ranges: [{ type: 'ECOSYSTEM', events }] },
    ]
    return Buffer.from(JSON.stringify({ id: `X-${i}`, modified: '2026-01-01T00:00:00Z', affected }))
  })

describe('of thirty records', () => {
  const OPEN = [{ introduced: '0' }]
  const FIXED = [{ introduced: '0' }, { fixed: '2.0.0' }]
  const BRANCHES = [{ introduced: '0' }, { fixed: '1.4.3' }, { introduced: '1.5' }, { fixed: '1.5.1' }]

  test.each([
    ['a suffix where there are no releases', 'PyPI', FIXED, 'PyPI:none', FIXED, 'ecosystemChanged'],
    ['another release', 'Debian:11', FIXED, 'Debian:12', FIXED, 'rangesLost'],
    ['another repository', 'Packagist', FIXED, 'Packagist:https://packages.example/8', FIXED, 'rangesLost'],
    ['a suffix of a distribution without releases', 'Wolfi', FIXED, 'Wolfi:1', FIXED, 'ecosystemChanged'],
    ['a lower fix of a range with a kept beginning', 'PyPI', FIXED, 'PyPI', [{ introduced: '0.0.0' }, { fixed: '1' }], 'fixLowered'],
    ['a last branch without its range', 'PyPI', BRANCHES, 'PyPI', BRANCHES.slice(0, 2), 'rangesLost'],
    ['an unreadable fix', 'npm', FIXED, 'npm', [{ introduced: '0' }, { fixed: 'x y' }], 'incomparable'],
  ] as const)('%s raises a doubt', (_name, was, before, is, after, kind) => {
    const [old, now] = [recordsOf(was, before), recordsOf(is, after)]
    const { refusal, warning } = judged(old.map((one, i) => [one, now[i] ?? one] as const), 30)
    expect(`${refusal ?? ''} ${warning ?? ''}`).toContain(`(guard.${kind}`)
  })

  test('a doubt about one record, and a fraction that is no binary one, are said as people write them', () => {
    const [old = [], now = []] = [FIXED, [{ introduced: '0' }, { fixed: '1' }]].map((events) => recordsOf('PyPI', events).slice(0, 1))
    const pairs = old.map((one, i) => [one, now[i] ?? one] as const)
    const few = { fixLoweredRecords: 0, fixLoweredFraction: 0.07 }
    expect(judged(pairs, 9, few).refusal).toBe(
      '1 of 9 records has a lower fixed version than before (guard.fixLowered, more than 0 and more than 7 %)',
    )
  })

  test.each([
    ['a first fix', OPEN, FIXED],
    ['first fixes of two branches', OPEN, BRANCHES],
    ['a raised fix', FIXED, [{ introduced: '0' }, { fixed: '2.0.1' }]],
    ['a fix in the place of the last affected version', [{ introduced: '0' }, { last_affected: '1.9' }], FIXED],
  ] as const)('%s raises none', (_name, before, after) => {
    const [old, now] = [recordsOf('PyPI', before), recordsOf('PyPI', after)]
    const verdict = judged(old.map((one, i) => [one, now[i] ?? one] as const), 30)
    expect(verdict).toMatchObject({ refusal: null, warning: null, lines: [] })
  })

  test.each([
    ['has a wrong byte', (body: Buffer) => Buffer.from(body.map((byte, at) => (at === body.length - 6 ? byte ^ 1 : byte)))],
    ['ends early', (body: Buffer) => body.subarray(0, -9)],
    ['is empty', () => Buffer.alloc(0)],
    ['is another of the same size', () => gzipSync(Buffer.alloc(150, ' '))],
    ['has another one behind it', (body: Buffer) => Buffer.concat([body, body])],
  ])('one whose stored content %s does not keep the others from being compared', (_name, damage) => {
    const [old, now] = [FIXED, [{ introduced: '0' }, { fixed: '1' }]].map((events) => recordsOf('PyPI', events)) as [Buffer[], Buffer[]]
    const pairs = [...old, ...old, ...old].map((one, i) => [one, now[i % 30] ?? one] as const)
    const verdict = judged(pairs, 90, {}, (body, at) => (at === 70 ? damage(body) : body))
    expect(verdict.notCompared).toBe(1)
    expect(`${verdict.refusal ?? ''} ${verdict.warning ?? ''}`).toContain('89 of 90 records have a lower fixed version')
  })
}) // prettier-ignore
