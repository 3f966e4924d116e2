import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import AdmZip from 'adm-zip'
import { describe, expect, test } from 'vitest'
import { generateRecord } from '../sandbox/feed/generate.ts'
import type { Doubt } from '../../src/base/domain/doubts.ts'
import { judgeGenerated } from '../guard/changes.ts'
import { HOSTILE, judged, mutated } from '../guard/hostile.ts'
import { HOSTILE_FORMS } from '../guard/hostile-forms.ts'

const DATA = resolve('../shared/data')
const SERIES = ['t0', 't1', 't2'].map((name) => `${DATA}/series/${name}.zip`)
const REAL = `${DATA}/osv-real.zip`

function recordsOf(path: string): Map<string, Buffer> {
  return new Map(new AdmZip(path).getEntries().map((entry) => [entry.entryName, entry.getData()]))
}

/** Limits that are above none: every doubt is a warning. */
const ANY = { mode: 'warn', limitCount: 0, limitShare: 0 } as const

const countsOf = (warning: string | null): Partial<Record<Doubt, number>> =>
  Object.fromEntries(
    [...(warning ?? '').matchAll(/(\d+) of \d+ [^(]*\((\w+)/g)].map(([, count, kind = '']) => [kind, Number(count)]),
  )

/** Generated records say what they are derived from, and have no aliases. */
const withAliases = (bytes: Buffer, at: number): Buffer =>
  mutated(bytes, (doc) => (doc['aliases'] ??= [`CVE-2024-${1000 + at}`]))

/** The hostile feeds of which no doubt is raised, where all of these records are changed. */
function believed(given: readonly Buffer[]): string[] {
  const records = given.map(withAliases)
  const missed = [...HOSTILE, ...HOSTILE_FORMS].filter(([, kind, mutate]) => {
    const some = kind === 'notCompared' ? records.slice(0, 25) : records // a megabyte each
    const { refusal, warning } = judged(
      some.map((one) => [one, mutated(one, mutate)]),
      records.length,
    )
    return !`${refusal ?? ''} ${warning ?? ''}`.includes(`(${kind}`)
  })
  return missed.map(([name]) => name)
}

test('a doubt is raised by each of the hostile feeds', () => {
  expect([...HOSTILE, ...HOSTILE_FORMS]).toHaveLength(68 + 32)
  const records = Array.from({ length: 150 }, (_, i) => generateRecord({ seed: 7 }, i).bytes)
  expect(believed(records)).toEqual([])
})

test('no change that is called harmless raises a doubt, of many generated ones', () => {
  const { harmless, doubtful } = judgeGenerated(3, 60_000)
  expect(harmless).toBeGreaterThan(10_000)
  expect(doubtful).toBeGreaterThan(10_000)
})

test('records with far too many events are not compared from some number on', () => {
  const record = (id: number, fixed: string): Buffer => {
    const events = Array.from({ length: 1900 }, (_, i) =>
      i % 2 === 0 ? { introduced: `1.${i}` } : { fixed: `1.${i}.${fixed}` },
    )
    const ranges = [{ type: 'SEMVER', events }]
    const affected = [0, 1, 2, 3].map((n) => ({ package: { ecosystem: 'npm', name: `p${n}` }, ranges }))
    return Buffer.from(JSON.stringify({ id: `H-${id}`, modified: '2026-06-01T00:00:00Z', affected }))
  }
  const pairs = Array.from({ length: 40 }, (_, i) => [record(i, '1'), record(i, '2')] as const)
  const { refusal, notCompared } = judged(pairs, 40, { limitCount: 5 })
  expect(notCompared).toBe(40 - Math.floor((200_000 + 40 * 200) / (2 * 4 * 1900)))
  expect(refusal).toContain('(incomparable, more than 5 and more than 1 %)')
})

test.skipIf(!existsSync(REAL))('a doubt is raised by each of them when they are made of real records', () => {
  const records = [...recordsOf(REAL).values()].filter((_, i) => i % 16 === 0)
  expect(records.length).toBeGreaterThan(300)
  expect(believed(records)).toEqual([])
})

describe.skipIf(!SERIES.every((path) => existsSync(path)))('over a real feed at three dates', () => {
  const states = SERIES.map((path) => (existsSync(path) ? recordsOf(path) : new Map<string, Buffer>()))
  const between = (from: number, to: number, limits = {}) => {
    const before = states[from]
    const after = states[to]
    if (before === undefined || after === undefined) throw new Error('no such state')
    const pairs = [...after].map(([name, bytes]) => [before.get(name) ?? null, bytes] as const)
    return judged(pairs, before.size, limits)
  }

  test('no doubt is raised: no false alarm', () => {
    for (const [from, to] of [
      [0, 1],
      [1, 2],
      [0, 2],
    ] as const)
      expect(between(from, to)).toMatchObject({ refusal: null, warning: null })
  })

  test('single records that would raise one without limits are few', () => {
    expect(
      [between(0, 1, ANY), between(1, 2, ANY), between(0, 2, ANY)].map(({ warning, lines }) => [
        countsOf(warning),
        lines,
      ]),
    ).toMatchInlineSnapshot(`
      [
        [
          {
            "firstFixed": 1,
          },
          [
            "PYSEC-2023-121: PyPI zstd: affected range narrowed from [>= 0] to [>= 0 < 1.5.4]",
          ],
        ],
        [
          {
            "idsChanged": 1,
            "withdrawn": 1,
          },
          [
            "JLSEC-2025-190: withdrawn (2026-04-27T17:15:17.489Z)",
            "RUSTSEC-2026-0019: aliases or upstream ids came: ghsa-5pmp-jpcf-pwx6",
          ],
        ],
        [
          {
            "firstFixed": 1,
            "withdrawn": 1,
          },
          [
            "JLSEC-2025-190: withdrawn (2026-04-27T17:15:17.489Z)",
            "PYSEC-2023-121: PyPI zstd: affected range narrowed from [>= 0] to [>= 0 < 1.5.4]",
          ],
        ],
      ]
    `)
  })
})
