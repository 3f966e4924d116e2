import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { type JsonPath, locate, valueAt, elementsOf, membersOf, sliceText } from '../../../src/base/json/slices.ts'
import { findMembers, findOnlyMember } from '../../../src/features/scanners/members.ts'
import { type Written, compact, textOf, written } from './texts.ts'
import { bothTest, LONG, test } from '../../support/tables.ts'

/** Every place of a value, of repeated names only the last, as a parser sees it. */
function* placesOf(value: Written, at: JsonPath = []): Generator<[JsonPath, Written]> {
  for (const [step, item] of innerOf(value)) {
    yield [[...at, step], item]
    yield* placesOf(item, [...at, step])
  }
}

function innerOf(value: Written): [string | number, Written][] {
  if (value.kind === 'list') return value.items.map((item, place) => [place, item])
  if (value.kind !== 'object') return []
  return [...new Map(value.members.map((member) => [member.name, member.value]))]
}

describe('positions in JSON', () => {
  bothTest('locate every value with its original spelling', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, seed) => {
        const text = Buffer.from(textOf(value, seed))
        for (const [path, expected] of placesOf(value)) {
          const slice = locate(text, path)
          expect(slice).not.toBeNull()
          if (slice !== null) expect(compact(sliceText(text, slice))).toBe(textOf(expected, 0))
        }
      }),
      { numRuns: LONG ? 300 : 50 },
    )
  })

  test('locate values that parse to what the whole text has there', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const value: unknown = JSON.parse(json)
        const text = Buffer.from(json)
        if (typeof value !== 'object' || value === null) return
        for (const [name] of Object.entries(value)) {
          const step = Array.isArray(value) ? Number(name) : name
          const slice = locate(text, [step])
          expect(slice).not.toBeNull()
          if (slice !== null) expect(JSON.parse(sliceText(text, slice))).toEqual(valueAt(value, [step]))
        }
      }),
    )
  })

  test('list members in order with decoded names, and elements in order', () => {
    const text = Buffer.from(' { "\\u0061\\n" : [ 1 , "x]" ] , "b" : { } , "b" : -1.5e3 } ')
    const members = [...membersOf(text, 0)]
    expect(members.map(({ name, key, value }) => [name, sliceText(text, key), sliceText(text, value)])).toEqual([
      ['a\n', '"\\u0061\\n"', '[ 1 , "x]" ]'],
      ['b', '"b"', '{ }'],
      ['b', '"b"', '-1.5e3'],
    ])
    const [list] = members
    const elements = [...elementsOf(text, list?.value.start ?? 0)]
    expect(elements.map((slice) => sliceText(text, slice))).toEqual(['1', '"x]"'])
  })

  test('are null for a missing member', () => {
    const text = Buffer.from('{"a":[1,{"b":null}],"c":"text"}')
    for (const path of [['x'], ['a', 2], ['a', -1], ['a', 'b'], ['c', 0], ['a', 1, 'b', 'd'], [0]])
      expect([path, locate(text, path)]).toEqual([path, null])
    for (const path of [['x'], ['a', 2], ['c', 'y', 0], ['a', 1, 'b', 'd']])
      expect([path, valueAt(JSON.parse(text.toString()), path)]).toEqual([path, undefined])
    expect([...membersOf(text, 5)]).toEqual([])
    expect([...elementsOf(text, 0)]).toEqual([])
  })

  test('throw for a text that is cut off', () => {
    const whole = '{"a":[1,"x\\"y",{"b":[true,null]}],"c":{"d":"e"}}'
    for (let end = 1; end < whole.length; end++) {
      const text = Buffer.from(whole.slice(0, end))
      expect(() => [...membersOf(text, 0)]).toThrow(/unexpected JSON|JSON/)
    }
  })
})

test.each<[string, (string | null)[]]>([
  ['{"a":1,"b":[2],"a":{"b":3}}', ['{"b":3}', '[2]']],
  ['{"\\u0061":1}', ['1', null]],
  [`{"c":"${'x'.repeat(100)}\\"\\\\","a":"${'\\\\'.repeat(80)}","b":2}`, [`"${'\\\\'.repeat(80)}"`, '2']],
  ['[1]', [null, null]],
  [' { } ', [null, null]],
])('members are found by their names, and the last of a name counts: %s', (json, expected) => {
  const text = Buffer.from(json)
  const found = findMembers(text, 0, [Buffer.from('a'), Buffer.from('b')])
  expect(found.map((slice) => slice && sliceText(text, slice))).toEqual(expected)
})

test('a member is found by its only occurrence where no other text can be its name', () => {
  const find = (text: string): string | null => {
    const found = findOnlyMember(Buffer.from(text), Buffer.from('"a"'))
    return found === null ? null : text.slice(found, found + 3)
  }
  expect(find('{"b":{"c":["d"]},"a" : [1]}')).toBe('[1]')
  expect(find('{"b":"\\\\","a":[1],"c":"\\u00e9"}')).toBe('[1]')
  for (const text of [
    '{"b":{"a":[2]},"a":[1]}',
    '{"a":[2],"a":[1]}',
    '{"b":"a","a":[1]}',
    '{"b":{"a":[2]},"\\u0061":[1]}',
    '{"\\u0061":[1],"b":"a"}',
    '{"b":"\\"a","\\u0061":[1]}',
    '{"b":"\\"a","c":[1]}',
    '{"b":[1]}',
  ])
    expect([text, find(text)]).toEqual([text, null])
})
