import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { LONG, longTest, test } from '../../support/tables.ts'
import { type OsvIndex, createIndexReader, endOrReread, parseIndex } from '../../../src/sync/osv/index-parser.ts'
import { sha256Hex } from '../../../src/base/digest.ts'
import { planOsv } from '../../../src/sync/osv/diff.ts'
import { bench, tamper } from '../fixtures.ts'

/** What an index says, or how it is refused. */
function toldBy(read: () => OsvIndex): unknown {
  let index: OsvIndex
  try {
    index = read()
  } catch (error) {
    return String(error)
  }
  const { ids, sha256, duplicates, unusable, unnamed, skipped } = index
  const pairs = [...ids.ids()].map((id, ordinal) => [id, ids.modifiedAt(ordinal), ids.get(id)])
  return { pairs, sha256: sha256.toString('hex'), duplicates, unusable, unnamed, skipped }
}

const told = (bytes: Buffer, plain: boolean): unknown => toldBy(() => parseIndex(bytes, { plain }))

/** The same of an index that arrives in pieces of these sizes, in turn; what was read of them is overwritten. */
function toldInPieces(bytes: Buffer, sizes: readonly number[], windowBytes: number): unknown {
  return toldBy(() => {
    const reader = createIndexReader(0, { windowBytes })
    let from = 0
    for (let turn = 0; from < bytes.length; turn++) {
      const piece = Buffer.from(bytes.subarray(from, from + (sizes[turn % sizes.length] ?? 1)))
      from += piece.length
      reader.push(piece)
      piece.fill('"')
    }
    return endOrReread(reader, undefined, () => bytes)
  })
}

const space = fc.constantFrom('', '', ' ', '\n\t', '\r ')
const text = fc.oneof(
  fc.constantFrom('A-1', 'A-2', 'ü/漢', '', 'a\\b', 'q"q', '\u0000', '\u{1f600}', '2026-01-01T00:00:00Z'),
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
const odd = fc.oneof(
  fc.array(member, { maxLength: 3 }).map((members) => `{${members.join(',')}}`),
  fc.constantFrom('1', 'null', '"]"', '[[],{"a":"}"}]', '{"id":"../x","modified":""}', '', '{', '}'),
)
const entry = fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd })
const document = fc
  .tuple(
    space,
    fc.array(entry, { maxLength: 12 }),
    fc.oneof(space, fc.constant(' '.repeat(70))),
    fc.constantFrom(']', ']', ']', '', ']x', ',]', ']\n '),
    fc.constantFrom('', '', '', '\ufeff', 'x', '\n{'),
  )
  .map(([a, entries, b, end, start]) => Buffer.from(`${start}${a}[${a}${entries.join(`${b},${b}`)}${b}${end}`))
/** Bytes that are mostly UTF-8, one of them perhaps damaged. */
const received = fc
  .tuple(document, fc.option(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }))), fc.nat(9))
  .map(([bytes, damage, cut]) => {
    if (damage !== null && bytes.length > 0) bytes[damage[0] % bytes.length] = damage[1]
    return cut === 0 ? bytes.subarray(0, bytes.length >>> 1) : bytes
  })

describe('an index parsed from its bytes', () => {
  longTest('gives the same entries and refusals as a JSON parser', () => {
    fc.assert(
      fc.property(document, (bytes) => {
        expect(told(bytes, true)).toEqual(told(bytes, false))
      }),
      { numRuns: LONG ? 4_000 : 120 },
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

describe('an index that arrives in pieces', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
  const windows = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant(100_000))

  longTest('gives the same result as one in one piece, wherever pieces and windows end', () => {
    fc.assert(
      fc.property(received, sizes, windows, (bytes, lengths, windowBytes) => {
        expect(toldInPieces(bytes, lengths, windowBytes)).toEqual(told(bytes, true))
      }),
      { numRuns: LONG ? 10_000 : 300 },
    )
  })

  test('gives the same result when it is damaged or cut anywhere', () => {
    const sound = Buffer.from('\ufeff [{"id":"A-1","modified":"2026"}, {"modified":"x","id":"\u{1f600}"}, 7]')
    expect(toldInPieces(sound, [1], 1)).toMatchObject({ pairs: { length: 2 }, unusable: 1 })
    for (let at = 0; at < sound.length; at++) {
      const cut = sound.subarray(0, at)
      expect(toldInPieces(cut, [1], 1), cut.toString()).toEqual(told(cut, true))
      for (const byte of [0, 0x22, 0x5c, 0x5d, 0x7b, 0x7d, 0x2c, 0x20, 0xc3, 0xff]) {
        const damaged = Buffer.from(sound)
        damaged[at] = byte
        expect(toldInPieces(damaged, [1], 1), damaged.toString()).toEqual(told(damaged, true))
      }
    }
  })

  longTest('is refused for an entry over a megabyte, and not for one of a megabyte', () => {
    const brief = (what: unknown): string => (typeof what === 'string' ? what : sha256Hex(JSON.stringify(what)))
    const indexWith = (entry: string): Buffer => Buffer.from(`[{"id":"A-1","modified":""},${entry}]`)
    const entryOf = (bytes: number): string => `{"id":"A-2","modified":"${'x'.repeat(bytes - 26)}"}`
    for (const bytes of [999_999, 1_000_000, 1_000_001]) {
      const index = indexWith(entryOf(bytes))
      const whole = brief(told(index, true))
      if (bytes > 1_000_000) expect(whole).toContain('an entry has more than 1000000 bytes')
      else expect(parseIndex(index).ids.stamp('A-2')).toHaveLength(bytes - 26)
      expect(brief(told(index, false))).toBe(whole)
      for (const size of [1000, 300_000, 5_000_000]) expect(brief(toldInPieces(index, [size], 65_536))).toBe(whole)
    }
    const endless = indexWith(entryOf(2_000_000).slice(0, -2))
    expect(told(endless, true)).toContain('an entry has more than 1000000 bytes')
    expect(toldInPieces(endless, [10_000], 65_536)).toBe(told(endless, true))
  })
})

describe('the plan of a sync', () => {
  test('compares any ids and stamps', async () => {
    const made = await bench({ sandbox: { records: 30, large: 0 } })
    await made.run('osv')
    const columns = 'body, modified, crc32, size, sha256, changed, as_of'
    const insert = `INSERT INTO osv_record (id, ${columns}) SELECT ?, ${columns} FROM osv_record LIMIT 1`
    for (const id of ['ü/漢', '\u{10ffff}', ' ', 'a\u0001b']) tamper(made.dir, insert, id)
    made.sandbox.feed.change(3)
    made.sandbox.feed.remove(2)
    made.sandbox.feed.add(2)
    const index = parseIndex(made.sandbox.feed.index())
    tamper(made.dir, "UPDATE osv_record SET modified = 'a' || char(0) || 'b' WHERE id = ' '")
    const plan = planOsv(made.store.osv, index)
    expect(plan).toMatchObject({ stored: 34, changed: { length: 3 }, removed: { length: 6 } })
    expect([...plan.added]).toHaveLength(2)
  })
})
