import { expect, test } from 'vitest'
import { matchesAny, parsePattern } from '../../../src/base/domain/patterns.ts'

const matches = (pattern: string, names: Parameters<typeof matchesAny>[1]): boolean => {
  const parsed = parsePattern(pattern)
  return parsed !== null && matchesAny([parsed], names)
}

test.each([
  ['image:library/python', 'library/python', true],
  ['image:library/python', 'library/python3', false],
  ['image:Library/*', 'library/Python', true],
  ['image:library/*', 'library/deep/python', true],
  ['image:library/*', 'other/python', false],
  ['image:*', 'x', true],
  ['image:*/python', 'library/python', true],
  ['image:a*b*c', 'a-b-b-c', true],
  ['image:a*b*c', 'a-c-b', false],
  ['image:ab*ba', 'aba', false],
  ['image:a.c', 'abc', false],
])('%s names %s: %s', (pattern, image, expected) => {
  expect(matches(pattern, { image })).toBe(expected)
})

test('a pattern of one kind matches no item of another kind', () => {
  expect(matches('package:curl', { image: 'curl' })).toBe(false)
  expect(matches('ecosystem:debian', { package: 'curl', ecosystem: 'debian' })).toBe(true)
})

test('a package is matched by each of its names', () => {
  expect(matches('package:curl', { package: ['libcurl4', 'curl'] })).toBe(true)
})

test.each(['', 'curl', 'image:', 'tag:x', 'image:a b', 'images:x'])('%j is refused as a pattern', (text) => {
  expect(parsePattern(text)).toBeNull()
})

test('matching a pattern with many stars takes time linear in the text', () => {
  expect(matches(`image:${'a*'.repeat(140)}`, { image: 'a'.repeat(100_000) })).toBe(true)
  expect(matches(`image:${'a*'.repeat(140)}b`, { image: 'a'.repeat(100_000) })).toBe(false)
})
