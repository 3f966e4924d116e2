import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import AdmZip from 'adm-zip'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Model, applied, differencesOf, modelOf, pair, plain, recordOf } from '../documents/differences/pairs.ts'

const SERIES = ['t0', 't1', 't2'].map((name) => resolve('../shared/data/series', `${name}.zip`))
const present = SERIES.every((path) => existsSync(path))

type Stored = Parameters<typeof modelOf>[0] & { id: string; modified: string }

/** The records of an archive by their ids. */
function recordsOf(path: string): Map<string, Stored> {
  const entries = new AdmZip(path).getEntries()
  const records = entries.map((entry) => JSON.parse(entry.getData().toString('utf8')) as Stored)
  return new Map(records.map((record) => [record.id, record]))
}

/** Counts the records that have a difference of each kind, between two states; checks that each difference applies. */
function figures(before: Map<string, Stored>, after: Map<string, Stored>): Record<string, number> {
  const counts = new Map<string, number>()
  for (const id of new Set([...before.keys(), ...after.keys()])) {
    const old = before.get(id) ?? null
    const now = after.get(id) ?? null
    const found = differencesOf(old, now)
    if (old !== null && now !== null) {
      expect([id, applied(modelOf(old), found)]).toEqual([id, plain(modelOf(now))])
      if (found.length > 0 && old.modified === now.modified)
        counts.set('(under the same stamp)', (counts.get('(under the same stamp)') ?? 0) + 1)
    }
    const kinds = found.some(({ kind }) => kind === 'record_added') ? ['record_added'] : found.map(({ kind }) => kind)
    for (const kind of new Set(kinds)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return Object.fromEntries([...counts].sort(([one], [other]) => (one < other ? -1 : 1)))
}

describe('differences', () => {
  test('of 10,000 generated pairs of records give the other one', () => {
    fc.assert(
      fc.property(pair, fc.boolean(), ([before, after]: [Model, Model], split) => {
        const found = differencesOf(recordOf(before), recordOf(after, split))
        expect(applied(before, found)).toEqual(plain(after))
      }),
      { numRuns: 10_000 },
    )
  })

  test.skipIf(!present)('of a real feed at three dates are of these kinds', () => {
    const [t0, t1, t2] = SERIES.map(recordsOf)
    if (t0 === undefined || t1 === undefined || t2 === undefined) throw new Error('no series')
    expect({
      states: [t0.size, t1.size, t2.size],
      t1: figures(t0, t1),
      t2: figures(t1, t2),
    }).toMatchInlineSnapshot(`
      {
        "states": [
          808,
          825,
          932,
        ],
        "t1": {
          "(under the same stamp)": 2,
          "fix_added": 1,
          "fix_changed": 2,
          "modified_only": 1,
          "other_changed": 1,
          "range_changed": 2,
          "range_narrowed": 1,
          "record_added": 17,
          "versions_added": 4,
          "versions_removed": 1,
        },
        "t2": {
          "aliases_added": 1,
          "modified_only": 1,
          "other_changed": 13,
          "record_added": 107,
          "versions_added": 3,
          "withdrawn": 1,
        },
      }
    `)
  })
})
