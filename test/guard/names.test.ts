import { describe, expect, test } from 'vitest'
import { disguiseIn, disguisesIn } from '../../src/guard/names.ts'

const named = (name: string, ecosystem = 'PyPI') => ({ ecosystem, name })

describe('a name that replaces another one', () => {
  test.each([
    ['dj\u0430ngo', 'letters of several writings'],
    ['django\u200b', 'an invisible character'],
    ['\u202edjango', 'an invisible character'],
    ['djan\u00adgo', 'an invisible character'],
    ['django\ufe0f', 'an invisible character'],
    ['d\u00a0jango', 'an invisible character'],
    ['\uff44jango', 'a stylized letter'],
    ['\u{1d41d}jango', 'a stylized letter'],
    ['djang\u03bf', 'letters of several writings'],
    ['djang0', 'looks like'],
    ['cljango', 'looks like'],
  ])('is a disguise: %j', (name, why) => {
    expect(disguisesIn([named('django')], [named(name)])).toContain(why)
  })

  test.each([
    ['flask'],
    ['Django'],
    ['django-2'],
    ['\u043f\u0430\u043a\u0435\u0442'],
    ['na\u00efve'],
    ['\u65e5\u672c'],
  ])('is none: %j', (name) => {
    expect(disguisesIn([named('django')], [named(name)])).toBe(null)
  })
})

test('an id or a name by itself is a disguise only with strange characters', () => {
  expect(disguiseIn('GHSA-35jh-r3h4-6jhm')).toBe(null)
  expect(disguiseIn('CVE-2026-1\u2060')).toContain('an invisible character in CVE-2026-1<U+2060>')
})
