import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LONG } from '../../support/tables.ts'
import { type OsvIndex, parseIndex } from '../../../src/sync/osv/index-parser.ts'
import { planOsv } from '../../../src/sync/osv/diff.ts'
import { bench, tamper } from '../fixtures.ts'

/** What an index says, or how it is refused. */
function told(bytes: Buffer, plain: boolean): unknown {
  let index: OsvIndex
  try {
    index = parseIndex(bytes, { plain })
  } catch (error) {
    return String(error)
  }
  const { ids, duplicates, unusable } = index
  const pairs = [...ids.ids()].map((id, ordinal) => [id, ids.modifiedAt(ordinal), ids.get(id)])
  return { pairs, duplicates, unusable }
}

const space = fc.constantFrom('', '', ' ', '\n\t', '\r ')
const text = fc.oneof(
  fc.constantFrom(
    'A-1',
    'A-2',
    'ü/漢',
    '',
    'a\\b',
    'q"q',
    '\u0000',
    '\u{1f600}',
    '2026-01-01T00:00:00Z',
  ),
  fc.string({ unit: 'grapheme', maxLength: 12 }).filter((value) => value.isWellFormed()),
)
const literal = fc.oneof(
  { weight: 8, arbitrary: text.map((value) => JSON.stringify(value)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('1', 'null', '"\\u0041-1"', '"a\tb"', '{"id":"x"}', '[]', '"', ''),
  },
)
const key = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('"id"', '"modified"') },
  { weight: 1, arbitrary: fc.constantFrom('"x"', '"i\\u0064"', '"idx"', '"modified "', 'id', '"') },
)
const member = fc
  .tuple(space, key, space, literal, space)
  .map(([a, name, b, value, c]) => `${a}${name}${b}:${b}${value}${c}`)
const usual = fc.tuple(text, text, space, fc.boolean()).map(([id, modified, s, turned]) => {
  const members = [`"id":${s}${JSON.stringify(id)}`, `"modified"${s}:${JSON.stringify(modified)}`]
  return `{${s}${(turned ? members.reverse() : members).join(`${s},${s}`)}${s}}`
})
const odd = fc.array(member, { maxLength: 3 }).map((members) => `{${members.join(',')}}`)
const entry = fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd })
const document = fc
  .tuple(
    space,
    fc.array(entry, { maxLength: 12 }),
    space,
    fc.constantFrom(']', ']', ']', '', ']x', ',]'),
  )
  .map(([a, entries, b, end]) => Buffer.from(`${a}[${a}${entries.join(`${b},${b}`)}${b}${end}`))

describe('an index parsed from its bytes', () => {
  test('gives the same entries and refusals as a JSON parser', () => {
    fc.assert(
      fc.property(document, (bytes) => {
        expect(told(bytes, true)).toEqual(told(bytes, false))
      }),
      { numRuns: LONG ? 20_000 : 120 },
    )
  })

  test('gives the same result as a JSON parser when it is damaged anywhere', () => {
    const sound = Buffer.from('[{"id":"A-1","modified":"2026"}, {"modified":"x","id":"ü"}]')
    for (let at = 0; at < sound.length; at++)
      for (const byte of [0, 0x22, 0x5c, 0x7b, 0x7d, 0x2c, 0x20, 0x61, 0xff]) {
        const damaged = Buffer.from(sound)
        damaged[at] = byte
        expect(told(damaged, true), damaged.toString()).toEqual(told(damaged, false))
        expect(told(sound.subarray(0, at), true)).toEqual(told(sound.subarray(0, at), false))
      }
  })
})

describe('the plan of a sync', () => {
  test('is the same from texts and from rows for any ids and stamps', async () => {
    const made = await bench({ sandbox: { records: 30, large: 0 } })
    await made.run('osv')
    const columns = 'body, modified, crc32, size, sha256, changed, as_of'
    const insert = `INSERT INTO osv_record (id, ${columns}) SELECT ?, ${columns} FROM osv_record LIMIT 1`
    for (const id of ['ü/漢', '\u{10ffff}', ' ', 'a\u0001b']) tamper(made.dir, insert, id)
    made.sandbox.feed.change(3)
    made.sandbox.feed.remove(2)
    made.sandbox.feed.add(2)
    const index = parseIndex(made.sandbox.feed.index())
    const none = { eachPairText: () => [{ text: Buffer.of(1), records: 1 }][Symbol.iterator]() }
    const { store } = made
    const both = (): unknown[] => [
      planOsv(store.osv, index),
      planOsv({ ...store.osv, eachPairText: none.eachPairText as never }, index),
    ]
    const [texts, rows] = both()
    expect(texts).toEqual(rows)
    expect(texts).toMatchObject({ stored: 34, changed: { length: 3 }, removed: { length: 6 } })
    tamper(made.dir, "UPDATE osv_record SET modified = 'a' || char(0) || 'b' WHERE id = ' '")
    const [odd, again] = both()
    expect(odd).toEqual(again)
  })
})
