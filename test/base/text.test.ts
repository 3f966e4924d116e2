import { expect, test } from 'vitest'
import { counted, csvField, percent } from '../../src/base/text.ts'

test('a field of a CSV is quoted where it must be, and is never a formula', () => {
  const fields: [string | boolean | null, string][] = [
    ['CVE-2026-1', 'CVE-2026-1'],
    [null, ''],
    [true, 'true'],
    ['a,b', '"a,b"'],
    ['a "b"\n', '"a ""b""\n"'],
    ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM', "'@SUM"],
    ['\t=1', "'\t=1"],
  ]
  for (const [value, field] of fields) expect(csvField(value)).toBe(field)
})

test('counts and shares are written as people write them', () => {
  expect([0, 1, 2].map((n) => counted(n, 'record'))).toEqual(['0 records', '1 record', '2 records'])
  expect([1, 2].map((n) => counted(n, 'list is', 'lists are'))).toEqual(['1 list is', '2 lists are'])
  expect([0.07, 0.29, 0.01, 1, 0.0001].map(percent)).toEqual(['7 %', '29 %', '1 %', '100 %', '0.01 %'])
})
