import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { differenceOfIndexes } from '../../../src/sync/osv/index/difference.ts'
import { parseIndex } from '../../../src/sync/osv/index-parser.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'
import { bench, expectAgreement, expectSound, tamper } from '../fixtures.ts'

type Pair = readonly [id: string, modified: string]

/** Compares an index with the published one, by bytes and by parsing both; `null`: it must be parsed. */
function compared(fetched: Buffer, published: Buffer): { found: unknown; expected: unknown } {
  const before = parseIndex(published).ids
  const found = differenceOfIndexes(fetched, published, before.size, (id) => before.get(id) !== undefined)
  if (found === null) return { found: null, expected: null }
  const index = parseIndex(fetched) // must not throw
  const { duplicates, unusable } = index
  const ids = [...index.ids.ids()]
  const { added, changed, removed } = found
  const stamps = [...added, ...changed].map((id) => found.listed.stamp(id))
  return {
    found: { added, changed, removed, stamps, duplicates: 0, unusable: 0 },
    expected: {
      added: ids.filter((id) => before.get(id) === undefined),
      changed: ids.filter((id) => before.get(id) !== undefined && before.stamp(id) !== index.ids.stamp(id)).sort(),
      removed: [...before.ids()].filter((id) => index.ids.get(id) === undefined).sort(),
      stamps: [...added, ...changed].map((id) => index.ids.stamp(id)),
      duplicates,
      unusable,
    },
  }
}

/** Another entry than `{"id":…,"modified":…}`: a JSON parser must read it, it is refused, or its braces are in a text. */
const ODD = [
  '{"id":"A/1","modified":"m"}',
  '{"id":"\\u0041","modified":"m"}',
  '{"id":"Z","modified":"m","more":[{"id":"N","modified":"n"},{"id":"M","modified":"n"}]}',
  '{"id":"Y","modified":"},{\\"id\\":\\"X\\",\\"modified\\":\\"x"}',
  '{"id":"},{","modified":"m"}',
  '{"modified":"first","id":"V"}',
  '{"modified":"no id"}',
  '{"id":"W"}',
  '"{"',
  '[{"id":"N","modified":"n"}]',
  '{"id":"ü","modified":"ü"}',
  '7',
  '',
]

const id = fc.integer({ min: 0, max: 60 }).map((n) => `ROOT-${n}`)
const stamp = fc.constantFrom('2026-05-01', '2026-05-02', 'ü', '')
const pairs = fc.uniqueArray(fc.tuple(id, stamp), { maxLength: 40, selector: ([one]) => one })
const write = ([one, modified]: Pair): string => JSON.stringify({ id: one, modified })
const edit = fc.oneof(
  { weight: 3, arbitrary: fc.record({ at: fc.nat(50), put: fc.tuple(id, stamp).map(write) }) },
  { weight: 3, arbitrary: fc.record({ at: fc.nat(50), put: fc.constant(null) }) },
  { weight: 1, arbitrary: fc.record({ at: fc.nat(50), put: fc.constantFrom(...ODD) }) },
)
const blank = fc.constantFrom('', '', '', '\n', ' \t')

describe('an index compared with the published one by bytes', () => {
  bothTest('differs as by parsing both, whatever was edited, or must be parsed', () => {
    fc.assert(
      fc.property(
        pairs,
        fc.array(edit, { maxLength: 6 }),
        fc.array(edit, { maxLength: 1 }),
        fc.tuple(blank, blank),
        (listed, edits, earlier, [space, end]) => {
          const lines = listed.map(write)
          for (const { at, put } of earlier) if (put !== null) lines.splice(at, 0, put)
          const published = Buffer.from(`[${lines.join(`,${space}`)}]`)
          for (const { at, put } of edits)
            if (put === null) lines.splice(at, 1)
            else lines.splice(at, at % 3 === 0 ? 1 : 0, put)
          const fetched = Buffer.from(`[${lines.join(`,${space}`)}]${end}`)
          if (!isAccepted(published)) return
          const { found, expected } = compared(fetched, published)
          expect(found).toEqual(expected)
        },
      ),
      { numRuns: LONG ? 10_000 : 200 },
    )
  })

  test('need not be parsed for records that are added, changed, removed or moved', () => {
    const listed = Array.from({ length: 900 }, (_, n): Pair => [`ROOT-${n}`, `2026-05-${n % 28}`])
    const published = indexOf(listed)
    const [first = ['', ''], , third = ['', '']] = listed
    const next: Pair[] = listed.filter((_, n) => n % 97 !== 5 && n !== 2)
    next.splice(40, 0, ['NEW-1', 'a'], ['NEW-2', 'b'])
    next[300] = ['ROOT-X', 'c']
    next[500] = [next[500]?.[0] ?? '', 'later']
    next.push(third)
    next[0] = [first[0], 'later']
    const { found, expected } = compared(indexOf(next), published)
    expect(found).not.toBeNull()
    expect(found).toEqual(expected)
    expect(found).toMatchObject({ added: { length: 3 }, changed: { length: 2 } })
    for (const few of [listed.slice(1), listed.slice(0, -1), listed, [...listed, ['Z', 'z'] as const]]) {
      const again = compared(indexOf(few), published)
      expect(again.found).not.toBeNull()
      expect(again.found).toEqual(again.expected)
    }
  })

  longTest('must be parsed when any byte is damaged in a way that a parser refuses', () => {
    const text = '[{"id":"A-1","modified":"2026"},\n{"id":"A-2","modified":"x"},{"id":"A-3","modified":"y"}]'
    const published = Buffer.from(text)
    for (let at = 0; at < published.length; at++)
      for (const byte of [0, 0x22, 0x5c, 0x7b, 0x7d, 0x2c, 0x20, 0x61, 0x5d]) {
        const damaged = Buffer.from(published)
        damaged[at] = byte
        for (const bytes of [damaged, damaged.subarray(0, at), Buffer.concat([damaged, published])]) {
          const { found, expected } = compared(bytes, published)
          expect(found, bytes.toString()).toEqual(expected)
        }
      }
  })
})

function indexOf(listed: readonly Pair[]): Buffer {
  return Buffer.from(`[${listed.map(write).join(',')}]`)
}

/** Whether everything that an index lists can be published. */
function isAccepted(index: Buffer): boolean {
  try {
    return parseIndex(index).unusable === 0
  } catch {
    return false
  }
}

describe('a sync of a store that another program changed', () => {
  const DAMAGES: [string, string][] = [
    ['a stamp', "UPDATE osv_record SET modified = '2001' WHERE id = ?"],
    ['an id', "UPDATE osv_record SET id = 'ROOT-X-1' WHERE id = ?"],
    ['the index', 'UPDATE document SET body = zeroblob(40) WHERE ? IS NOT NULL'],
  ]
  for (const [name, sql] of DAMAGES)
    test(`compares the whole index and repairs ${name}`, async () => {
      const made = await bench({ sandbox: { records: 30, large: 0 } })
      await made.run('osv')
      const [, victim = ''] = made.sandbox.feed.ids()
      tamper(made.dir, sql, victim)
      made.sandbox.feed.add(1)
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      expectAgreement(made)
      await expectSound(made.dir)
    })
})
