import { gzipSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { generateRecord } from '../sandbox/feed/generate.ts'
import { bothTest, telling, test } from '../support/tables.ts'
import { BENIGN, HOSTILE, judged, mutated } from './hostile.ts'

const RECORDS = Array.from({ length: 100 }, (_, i) => withAlias(generateRecord({ seed: 1 }, i).bytes, i))

/** Returns a record with an alias: what is generated has none. */
function withAlias(bytes: Buffer, at: number): Buffer {
  const record = JSON.parse(bytes.toString()) as object
  return Buffer.from(JSON.stringify({ ...record, aliases: [`CVE-2020-${5000 + at}`] }))
}

describe('a feed in which', () => {
  bothTest.each(
    telling(
      HOSTILE,
      'the last number of fixes is one lower',
      'a gap opens below the fix, which stays',
      'versions of fixes cannot be read',
      'a package with a long name is added, and fixes are lowered',
      'fixes become a last affected version 0',
      'the first package alone changes its ecosystem',
      'aliases are added',
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
    expect(`${verdict.refusal ?? ''} ${verdict.warning ?? ''}`).toContain(`(${kind}`)
  })

  bothTest.each(telling(BENIGN, 'a fix is raised', 'a date moves'))('%s is believed', (_name, mutate) => {
    const verdict = judged(
      RECORDS.map((one) => [one, mutated(one, mutate)] as const),
      100,
    )
    expect(verdict).toMatchObject({ refusal: null, warning: null, lines: [], notCompared: 0 })
  })
})

test('a second member of the same name hides nothing: the last one counts', () => {
  const twice = (one: Buffer) => Buffer.from(one.toString().replace(/}$/, ',"affected":[]}'))
  const { refusal } = judged(
    RECORDS.map((one) => [one, twice(one)] as const),
    100,
  )
  expect(refusal).toContain('(emptied')
})

/** Records of one package, with these events and another ecosystem. */
const recordsOf = (ecosystem: string, events: readonly object[], length = 30): Buffer[] =>
  Array.from({ length }, (_, i) => {
    const affected = [{ package: { ecosystem, name: 'p' }, ranges: [{ type: 'ECOSYSTEM', events }] }]
    return Buffer.from(JSON.stringify({ id: `X-${i}`, modified: '2026-01-01T00:00:00Z', affected }))
  })

describe('of thirty records', () => {
  const FIXED = [{ introduced: '0' }, { fixed: '2.0.0' }]
  const lowered = (count: number, name = (i: number) => `p${i}`) => {
    const old = recordsOf('PyPI', FIXED).map((one, i) =>
      mutated(one, (doc) => (doc.affected ?? []).forEach((entry) => (entry.package.name = name(i)))),
    )
    const low = (one: Buffer) =>
      mutated(one, (doc) =>
        (doc.affected ?? []).forEach(
          (entry) => (entry.ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1' }] }]),
        ),
      )
    return old.slice(0, count).map((one) => [one, low(one)] as const)
  }

  test('twelve of one package are refused, and twelve of as many packages are named below the limits', () => {
    expect(
      judged(
        lowered(12, () => 'openssl'),
        30,
      ).refusal,
    ).toBe('12 records of openssl have fewer affected versions than before (affectedLost, more than 10 of one package)')
    expect(judged(lowered(12), 30)).toMatchObject({ refusal: null, warning: null, below: 12, doubts: 0 })
  })

  test('whose ids come that VEX rules out are refused, and reported where it does not', () => {
    const named = (one: Buffer, at: number) => mutated(one, (doc) => (doc['aliases'] = [`CVE-2020-${at}`]))
    const pairs = recordsOf('PyPI', FIXED).map((one, at) => [one, named(one, at)] as const)
    const judgedBy = (ruledOut: readonly string[]) =>
      judged(pairs, 30, {}, undefined, { ruledOut: (ids) => new Set(ruledOut.filter((id) => ids.has(id))) })
    expect(judgedBy(pairs.map((_, at) => `cve-2020-${at}`)).refusal).toContain('(idsRuledOut')
    expect(judgedBy(['cve-2020-1', 'cve-2020-2'])).toMatchObject({ refusal: null, counts: { idsChanged: 30 } })
  })

  test('twelve of one package are refused however its name is written', () => {
    const { refusal } = judged(
      lowered(12, (i) => ['Open_SSL', 'open-ssl', 'OPEN.ssl'][i % 3] ?? ''),
      30,
    )
    expect(refusal).toContain('12 records of open-ssl have fewer affected versions than before')
  })

  test('six are refused whose findings many mirrored tags have, since each counts as more', () => {
    const tagsOf = (ids: readonly string[]) => new Map(ids.map((id) => [id, 300]))
    const verdict = judged(lowered(6), 30, {}, undefined, { tagsOf })
    expect(verdict.refusal).toContain('which count as 30 by the mirrored tags that have findings of them')
    expect(judged(lowered(4), 30, {}, undefined, { tagsOf }).refusal).toBe(null)
  })

  const OPEN = [{ introduced: '0' }]
  const BRANCHES = [{ introduced: '0' }, { fixed: '1.4.3' }, { introduced: '1.5' }, { fixed: '1.5.1' }]

  test.each([
    ['a suffix where there are no releases', 'PyPI', FIXED, 'PyPI:none', FIXED, 'affectedLost'],
    ['another release', 'Debian:11', FIXED, 'Debian:12', FIXED, 'affectedLost'],
    ['another repository', 'Packagist', FIXED, 'Packagist:https://packages.example/8', FIXED, 'affectedLost'],
    ['a suffix of a distribution without releases', 'Wolfi', FIXED, 'Wolfi:1', FIXED, 'affectedLost'],
    [
      'a lower fix of a range with a kept beginning',
      'PyPI',
      FIXED,
      'PyPI',
      [{ introduced: '0.0.0' }, { fixed: '1' }],
      'affectedLost',
    ],
    ['a last branch without its range', 'PyPI', BRANCHES, 'PyPI', BRANCHES.slice(0, 2), 'affectedLost'],
    ['an unreadable fix', 'npm', FIXED, 'npm', [{ introduced: '0' }, { fixed: 'x y' }], 'incomparable'],
  ] as const)('%s raises a doubt', (_name, was, before, is, after, kind) => {
    const old = recordsOf(was, before)
    const now = recordsOf(is, after)
    const { refusal, warning } = judged(
      old.map((one, i) => [one, now[i] ?? one] as const),
      30,
    )
    expect(`${refusal ?? ''} ${warning ?? ''}`).toContain(`(${kind}`)
  })

  test.each([
    ['a raised beginning', [{ introduced: '9' }]],
    ['no events', []],
    ['a lower last affected version', [{ introduced: '0' }, { last_affected: '0.0.1' }]],
  ])('%s raises a doubt beside a range of commits, where the case of the name changes too', (_name, after) => {
    const commits = { type: 'GIT', repo: 'https://git.example/p', events: OPEN }
    const withCommits = (name: string, bytes: Buffer) =>
      mutated(bytes, (doc) =>
        (doc.affected ?? []).forEach((one) => {
          one.package.name = name
          one.ranges?.push(commits)
        }),
      )
    const now = recordsOf('PyPI', after)
    const pairs = recordsOf('PyPI', OPEN).map(
      (one, i) => [withCommits('p', one), withCommits('P', now[i] ?? one)] as const,
    )
    expect(judged(pairs, 30).refusal).not.toBe(null)
  })

  test('a doubt about one record, and a fraction that is no binary one, are said as people write them', () => {
    const [old = [], now = []] = [FIXED, [{ introduced: '0' }, { fixed: '1' }]].map((events) =>
      recordsOf('PyPI', events).slice(0, 1),
    )
    const pairs = old.map((one, i) => [one, now[i] ?? one] as const)
    const few = { limitCount: 0, limitShare: 0.07 }
    expect(judged(pairs, 9, few).refusal).toBe(
      '1 of 9 records has fewer affected versions than before (affectedLost, more than 0 and more than 7 %)',
    )
  })

  test.each([
    ['a raised fix', FIXED, [{ introduced: '0' }, { fixed: '2.0.1' }]],
    ['a fix in the place of the last affected version', [{ introduced: '0' }, { last_affected: '1.9' }], FIXED],
  ] as const)('%s raises none', (_name, before, after) => {
    const old = recordsOf('PyPI', before)
    const now = recordsOf('PyPI', after)
    const verdict = judged(
      old.map((one, i) => [one, now[i] ?? one] as const),
      30,
    )
    expect(verdict).toMatchObject({ refusal: null, warning: null, lines: [] })
  })

  test.each([
    ['a first fix', FIXED],
    ['first fixes of two branches', BRANCHES],
  ] as const)('%s of all is reported, and refused only below every listed version', (_name, after) => {
    const old = recordsOf('PyPI', OPEN)
    const now = recordsOf('PyPI', after)
    const verdict = judged(
      old.map((one, i) => [one, now[i] ?? one] as const),
      30,
    )
    expect(verdict.refusal).toBe(null)
    expect(verdict.warning).toContain('30 of 30 records have a first fixed version (firstFixed')
    const listed = (versions: string[], bytes: Buffer) =>
      mutated(bytes, (doc) => (doc.affected ?? []).forEach((one) => (one.versions = versions)))
    const low = old.map((one, i) => [listed(['3.0', '4.0'], one), now[i] ?? one] as const)
    expect(judged(low, 30).refusal).toContain('(affectedLost')
  })

  test.each([
    [
      'has a wrong byte',
      (body: Buffer) => Buffer.from(body.map((byte, at) => (at === body.length - 6 ? byte ^ 1 : byte))),
    ],
    ['ends early', (body: Buffer) => body.subarray(0, -9)],
    ['is empty', () => Buffer.alloc(0)],
    ['is another of the same size', () => gzipSync(Buffer.alloc(150, ' '))],
    ['has another one behind it', (body: Buffer) => Buffer.concat([body, body])],
  ])('one whose stored content %s does not keep the others from being compared', (_name, damage) => {
    const [old, now] = [FIXED, [{ introduced: '0' }, { fixed: '1' }]].map((events) =>
      recordsOf('PyPI', events, 90),
    ) as [Buffer[], Buffer[]]
    const pairs = old.map((one, i) => [one, now[i] ?? one] as const)
    const verdict = judged(pairs, 90, {}, (body, at) => (at === 70 ? damage(body) : body))
    expect(verdict.notCompared).toBe(1)
    expect(`${verdict.refusal ?? ''} ${verdict.warning ?? ''}`).toContain(
      '89 of 90 records have fewer affected versions',
    )
  })
})
