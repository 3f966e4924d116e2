import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Outline, createOutline } from '../../src/json/outline.ts'

function outlineOf(bytes: Buffer, pieces: number): Outline {
  const outline = createOutline()
  for (let at = 0; at < bytes.length; at += pieces) outline.write(bytes.subarray(at, at + pieces))
  return outline.end()
}

describe('the outline of a JSON text', () => {
  test('has the names at its top, with the texts that are short', () => {
    const text = '{"a":"one","b":{"a":"deep","x":[1,"]"]},"c":[{"d":1}],"e":7,"f":"q\\"}"}'
    const { sound, members, values } = outlineOf(Buffer.from(text), 1000)
    expect([...members]).toEqual([
      ['a', 'one'],
      ['b', null],
      ['c', null],
      ['e', null],
      ['f', 'q\\"}'],
    ])
    expect({ sound, values }).toEqual({ sound: true, values: 1 })
  })

  test('is the same however the text comes in pieces, and knows every JSON document as sound', () => {
    const document = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()))
    fc.assert(
      fc.property(document, fc.nat(2), fc.integer({ min: 1, max: 40 }), (value, indent, pieces) => {
        const bytes = Buffer.from(JSON.stringify(value, null, indent))
        const whole = outlineOf(bytes, bytes.length)
        expect(whole.sound).toBe(true)
        expect(outlineOf(bytes, pieces)).toEqual(whole)
        if (!Array.isArray(value)) expect(whole.members.size).toBe(Object.keys(value).length)
      }),
    )
  })

  test('knows a text that is cut short', () => {
    const document = fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 })
    fc.assert(
      fc.property(document, fc.nat(), (value, cut) => {
        const bytes = Buffer.from(JSON.stringify(value))
        const end = 1 + (cut % (bytes.length - 1))
        expect(outlineOf(bytes.subarray(0, end), 7).sound).toBe(false)
      }),
    )
  })
})
