import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { cutMembers } from '../../../src/base/json/cut.ts'
import { type Written, compact, textOf, written } from './texts.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const secret = (name: string): boolean => name === 'key' || name === 'secret' || name === ''
const cut = (text: string): string => cutMembers(Buffer.from(text), secret).toString()

function without(value: Written): Written {
  if (value.kind === 'scalar') return value
  if (value.kind === 'list') return { ...value, items: value.items.map(without) }
  const members = value.members.filter(({ name }) => !secret(name))
  return { ...value, members: members.map((one) => ({ ...one, value: without(one.value) })) }
}

describe('cutting members out of JSON', () => {
  bothTest('gives what parsing, deleting and serialising gives, with each token as it was written', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, seed) => {
        const left = cut(textOf(value, seed))
        expect(compact(left)).toBe(textOf(without(value), 0))
        JSON.parse(left)
      }),
      { numRuns: LONG ? 500 : 80 },
    )
  })

  test('gives back the very same text when there is nothing to cut', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, seed) => {
        const text = Buffer.from(textOf(value, seed))
        expect(cutMembers(text, () => false)).toBe(text)
      }),
    )
  })

  test.each([
    ['{"a":1,"key":"x","secret":"y"}', '{"a":1}'],
    ['{"key":"x","secret":"y"}', '{}'],
    ['{"key":"x","a":1,"secret":"y","b":2}', '{"a":1,"b":2}'],
    ['{ "key" : "x" , "a" : {"secret":"y"} , "key" : 2 }', '{ "a" : {} }'],
    [' [ {"key":[{"a":[]}],"b":{}} ] ', ' [ {"b":{}} ] '],
    ['{"k\\u0065y":"x"}', '{}'],
    ['{"a":"\\"key\\":\\"x\\"","key":"\\\\"}', '{"a":"\\"key\\":\\"x\\""}'],
    ['"key"', '"key"'],
  ])('%s becomes %s', (text, expected) => {
    expect(cut(text)).toBe(expected)
  })

  test('can decide by the beginning of a member’s value', () => {
    const hide = (name: string, rest: Buffer): boolean => name === 'key' && rest[0] === 0x22
    const text = Buffer.from('[{"key":"x"},{"key":7},{"key":{"key":"y"}}]')
    expect(cutMembers(text, hide).toString()).toBe('[{},{"key":7},{"key":{}}]')
  })

  longTest('reads a nesting of a hundred thousand levels in one pass without recursion', () => {
    const depth = 100_000
    const text = `${'{"a":['.repeat(depth)}{"key":"x"}${']}'.repeat(depth)}`
    expect(cut(text)).toBe(text.replace('"key":"x"', ''))
  })

  test.each(['', '{', '{"a"', '{"a":', '[1,', '{"a":1', '{key:1}', '"open'])(
    'throws for a text that is not JSON: %s',
    (text) => {
      expect(() => cut(text)).toThrow(/unexpected JSON|JSON/)
    },
  )
})
