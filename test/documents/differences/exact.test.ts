import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { changedFields } from '../../../src/documents/differences/exact.ts'
import { canonicalText } from '../../../src/documents/differences/facts.ts'
import { type Dice, createDice } from '../../support/dice.ts'

test.each([
  ['equal texts', '{"a":[1,{"b":"c"}]}', '{"a":[1,{"b":"c"}]}', []],
  ['white space and order', '{"a":1,"b":{"c":1,"d":2}}', ' { "b" : {"d":2, "c":1} , "a":1}\n', []],
  ['other escapes', '{"a":"\\u0041\\/","b\\u0062":1}', '{"a":"A/","bb":1}', []],
  ['quotes and backslashes', '{"a":"\\\\","b":"\\"","c":"\\\\\\""}', '{"a":"\\\\","b":"\\"","c":"\\\\\\\\\\""}', ['c']],
  ['a bracket in a text', '{"a":["]{"],"b":1}', '{"a":["]}"],"b":1}', ['a']],
  ['digits of a number', '{"a":[1.0],"b":12345678901234567890}', '{"a":[1],"b":12345678901234567891}', ['a', 'b']],
  ['a field that is gone, and a new one', '{"a":1,"b":{}}', '{"b":{},"c":null}', ['a', 'c']],
  ['a name that is there twice', '{"a":1,"a":2,"b":[]}', '{"a":2,"a":1,"b":[ ]}', ['a']],
  ['the same twice', '{"a":[1],"a":2}', '{"a":[ 1 ],"b":3,"a":2}', ['b']],
  ['an empty name', '{"":1}', '{"":2}', ['']],
  ['no objects', '[1,{"a":2}]', '[1,{"a":3}]', ['(record)']],
  ['equal lists', '[1, {"a":2}]', '[1,{"a":2}]', []],
  ['an object and a text', '{"a":1}', '"a"', ['(record)', 'a']],
  ['a list and an object with such a name', '[1]', '{"(record)":[1]}', ['(record)']],
  ['empty objects', '{}', ' { } ', []],
])('compares %s', (_what, before, after, fields) => {
  expect(changedFields(before, after)).toEqual(fields)
  expect(changedFields(after, before)).toEqual(fields)
})

const TEXTS: readonly [string, ...string[]] = [
  '',
  'a',
  '"',
  '\\',
  '\\"',
  ']}',
  '[{',
  'é\u2028',
  '\u0000',
  'x'.repeat(40),
]

const pick = <T>(dice: Dice, values: readonly [T, ...T[]]): T => values[dice(values.length)] ?? values[0]

function randomJson(dice: Dice, depth: number): unknown {
  const kind = dice(depth > 3 ? 3 : 5)
  if (kind === 0) return pick(dice, TEXTS)
  if (kind === 1) return pick(dice, [0, -1.5, 1e21, 7])
  if (kind === 2) return pick(dice, [true, false, null])
  const count = dice(4)
  if (kind === 3) return Array.from({ length: count }, () => randomJson(dice, depth + 1))
  return randomObject(dice, count, depth)
}

function randomObject(dice: Dice, count: number, depth: number): Record<string, unknown> {
  const members = Array.from({ length: count }, (_, i) => [`${pick(dice, TEXTS)}${i}`, randomJson(dice, depth + 1)])
  return Object.fromEntries(members) as Record<string, unknown>
}

longTest('finds what a comparison of the parsed values finds, however both are written', () => {
  const dice = createDice(20261126)
  let changes = 0
  for (let i = 0; i < 3000; i++) {
    const before = randomObject(dice, 1 + dice(5), 0)
    const after: Record<string, unknown> = { ...before }
    for (const name of Object.keys(before)) if (dice(3) === 0) after[name] = randomJson(dice, 1)
    const differing = Object.keys(before)
      .filter((name) => canonicalText(before[name]) !== canonicalText(after[name]))
      .sort()
    changes += differing.length
    const reversed = Object.fromEntries(Object.entries(after).reverse())
    const text = JSON.stringify(reversed, null, dice(2) * 2)
    expect(changedFields(JSON.stringify(before), text)).toEqual(differing)
  }
  expect(changes).toBeGreaterThan(1000)
})
