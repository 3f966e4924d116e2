import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Outline, createOutline } from '../../src/json/outline.ts'
import { textOf, written } from './texts.ts'

function outlineOf(text: Buffer | string, cuts: readonly number[] = []): Outline {
  const bytes = Buffer.from(text)
  const outline = createOutline()
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length]
  let from = 0
  for (const end of places.sort((one, other) => one - other)) {
    outline.write(bytes.subarray(from, end))
    from = end
  }
  return outline.end()
}

const membersOf = (text: string): unknown[] => [...outlineOf(text).members]

describe('the outline of a text', () => {
  test('is the same in whatever pieces the text comes', () => {
    fc.assert(
      fc.property(written, fc.nat(), fc.array(fc.nat(), { maxLength: 20 }), (value, seed, cuts) => {
        const text = `${textOf(value, seed)} ${textOf(value, 0)}`
        expect(outlineOf(text, cuts)).toEqual(outlineOf(text))
      }),
    )
  })

  test('of any JSON is sound, with the names at its top and the short texts there', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, seed) => {
        const text = textOf(value, seed)
        // A number or literal alone at the top is no document.
        const outline = outlineOf(text)
        if (value.kind === 'scalar') return
        expect(outline).toMatchObject({ sound: true, values: 1 })
        const parsed: unknown = JSON.parse(text)
        if (value.kind === 'list') return
        expect(new Set(outline.members.keys())).toEqual(
          new Set(value.members.map(({ name }) => name)),
        )
        for (const [name, inner] of Object.entries(parsed as object) as [string, unknown][])
          expect(outline.members.get(name)).toBe(typeof inner === 'string' ? inner : null)
      }),
    )
  })

  test('of a text that is cut short is not sound', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, cut) => {
        const text = textOf(value, 0)
        if (value.kind !== 'scalar')
          expect(outlineOf(text.slice(0, cut % text.length)).sound).toBe(false)
      }),
    )
  })

  test('the outline of any bytes is returned without a throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat()), (bytes, cuts) => {
        const text = Buffer.from(bytes)
        expect(outlineOf(text, cuts)).toEqual(outlineOf(text))
      }),
    )
  })

  test('reads names and texts as a parser does, escapes and all', () => {
    expect(
      membersOf('{"_t\\u0079pe":"https:\\/\\/in-toto.io\\/Statement\\/v1","a":[1,"b"],"c":-1}'),
    ).toEqual([
      ['_type', 'https://in-toto.io/Statement/v1'],
      ['a', null],
      ['c', null],
    ])
    expect(membersOf('{"a":"bad \\x","b":"x","b":2}')).toEqual([
      ['a', null],
      ['b', null],
    ])
  })

  test('passes over a byte order mark, but only a whole one at the start', () => {
    const mark = Buffer.from('\ufeff')
    expect(outlineOf(Buffer.concat([mark, Buffer.from('{"a":1}')]), [1, 2]).sound).toBe(true)
    expect(outlineOf(Buffer.concat([mark.subarray(0, 2), Buffer.from('{}')])).sound).toBe(false)
    expect(outlineOf(Buffer.concat([Buffer.from('{}'), mark])).sound).toBe(false)
    expect(outlineOf(mark).sound).toBe(false)
  })

  test('counts the values of JSON lines and looks at the first alone', () => {
    expect(outlineOf('{"a":"x"}\n{"b":"y"}\n')).toEqual({
      sound: true,
      values: 2,
      members: new Map([['a', 'x']]),
    })
  })

  test('does not grow with what is nested or named without end', () => {
    expect(outlineOf('['.repeat(5_000_000)).sound).toBe(false)
    const many = Array.from({ length: 5000 }, (_, at) => `"n${at}":0`).join(',')
    expect(outlineOf(`{${many}}`)).toMatchObject({ sound: true })
    expect(outlineOf(`{${many}}`).members.size).toBe(1000)
  })
})
