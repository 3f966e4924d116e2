import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Outline, createOutline } from '../../../src/base/json/outline.ts'
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
  test('does not depend on the pieces in which the text arrives', () => {
    fc.assert(
      fc.property(written, fc.nat(), fc.array(fc.nat(), { maxLength: 20 }), (value, seed, cuts) => {
        const text = `${textOf(value, seed)} ${textOf(value, 0)}`
        expect(outlineOf(text, cuts)).toEqual(outlineOf(text))
      }),
    )
  })

  test('has the top-level names and short texts of any valid JSON', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, seed) => {
        const text = textOf(value, seed)
        // A number or literal alone at the top is no document.
        const outline = outlineOf(text)
        if (value.kind === 'scalar') return
        expect(outline).toMatchObject({ sound: true, values: 1 })
        const parsed: unknown = JSON.parse(text)
        if (value.kind === 'list') return
        expect(new Set(outline.members.keys())).toEqual(new Set(value.members.map(({ name }) => name)))
        for (const [name, inner] of Object.entries(parsed as object) as [string, unknown][])
          expect(outline.members.get(name)).toBe(typeof inner === 'string' ? inner : null)
      }),
    )
  })

  test('reports a text that is cut short as unsound', () => {
    fc.assert(
      fc.property(written, fc.nat(), (value, cut) => {
        const text = textOf(value, 0)
        if (value.kind !== 'scalar') expect(outlineOf(text.slice(0, cut % text.length)).sound).toBe(false)
      }),
    )
  })

  test('is returned for any bytes without an exception', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat()), (bytes, cuts) => {
        const text = Buffer.from(bytes)
        expect(outlineOf(text, cuts)).toEqual(outlineOf(text))
      }),
    )
  })

  test('reads names and texts with escapes as a parser does', () => {
    expect(membersOf('{"_t\\u0079pe":"https:\\/\\/in-toto.io\\/Statement\\/v1","a":[1,"b"],"c":-1}')).toEqual([
      ['_type', 'https://in-toto.io/Statement/v1'],
      ['a', null],
      ['c', null],
    ])
    expect(membersOf('{"a":"bad \\x","b":"x","b":2}')).toEqual([
      ['a', null],
      ['b', null],
    ])
  })

  test('skips a byte order mark, but only a complete one at the start', () => {
    const mark = Buffer.from('\ufeff')
    expect(outlineOf(Buffer.concat([mark, Buffer.from('{"a":1}')]), [1, 2]).sound).toBe(true)
    expect(outlineOf(Buffer.concat([mark.subarray(0, 2), Buffer.from('{}')])).sound).toBe(false)
    expect(outlineOf(Buffer.concat([Buffer.from('{}'), mark])).sound).toBe(false)
    expect(outlineOf(mark).sound).toBe(false)
  })

  test('counts the values of JSON lines and reads only the first', () => {
    expect(outlineOf('{"a":"x"}\n{"b":"y"}\n')).toEqual({
      sound: true,
      values: 2,
      list: false,
      members: new Map([['a', 'x']]),
    })
  })

  test('reads the first object of a list, and nothing deeper or later', () => {
    expect(membersOf('[{"a":"x","b":{"c":"y"}},{"d":"z"}]')).toEqual([
      ['a', 'x'],
      ['b', null],
    ])
    expect(membersOf('[[{"a":"x"}],{"b":"y"}]')).toEqual([])
    expect(outlineOf('[{"a":"x"}]')).toMatchObject({ list: true, values: 1, sound: true })
  })

  test('does not grow with endless nesting or endless names', () => {
    expect(outlineOf('['.repeat(5_000_000)).sound).toBe(false)
    const many = Array.from({ length: 5000 }, (_, at) => `"n${at}":0`).join(',')
    expect(outlineOf(`{${many}}`)).toMatchObject({ sound: true })
    expect(outlineOf(`{${many}}`).members.size).toBe(1000)
  })
})
