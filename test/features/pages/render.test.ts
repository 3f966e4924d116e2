import { expect, test } from 'vitest'
import { escapeText } from '../../../src/features/pages/render.ts'

test.each([
  ['a soft hyphen', '\u00ad'],
  ['a word joiner', '\u2060'],
  ['a zero-width space', '\u200b'],
  ['a zero-width joiner', '\u200d'],
  ['a zero-width non-joiner', '\u200c'],
  ['a combining grapheme joiner', '\u034f'],
  ['a byte order mark', '\ufeff'],
  ['a right-to-left override', '\u202e'],
  ['a line separator', '\u2028'],
  ['a tag character', '\u{e0061}'],
  ['a variation selector', '\ufe0f'],
  ['a variation selector of the supplement', '\u{e0101}'],
  ['a Hangul filler', '\u3164'],
  ['a halfwidth Hangul filler', '\uffa0'],
  ['a Hangul choseong filler', '\u115f'],
  ['a Mongolian vowel separator', '\u180e'],
  ['a Khmer inherent vowel', '\u17b4'],
  ['an interlinear annotation', '\ufff9'],
  ['a braille blank', '\u2800'],
  ['a musical null notehead', '\u{1d159}'],
])('a page shows %s in a name by its number', (_what, character) => {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  expect(escapeText(`lo${character}dash`)).toBe(`lo[U+${number}]dash`)
})

test('a page leaves text as it is in which such characters are seen', () => {
  for (const text of [
    '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
    '\u0915\u094d\u200d\u0937',
    '\u2764\ufe0f',
    '\u{1f468}\u200d\u{1f4bb}',
    'caf\u00e9',
    'e\u0301',
    'a\u00a0b',
  ])
    expect(escapeText(text)).toBe(text)
})
