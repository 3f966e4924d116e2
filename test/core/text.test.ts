import { expect, test } from 'vitest'
import { csvField } from '../../src/core/text.ts'

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
