import fc from 'fast-check'
import { expect, test } from 'vitest'
import { instantOf, readHttpDate, readRetryAfter, readSince } from '../../src/base/time.ts'

const two = (most: number) => fc.integer({ min: 0, max: most }).map((number) => `${number}`.padStart(2, '0'))

test('a timestamp in the common form is the same instant as in another form', () => {
  const year = fc.constantFrom('0000', '0001', '1900', '2000', '2024', '2026', '9999')
  const parts = fc.tuple(year, two(13), two(32), two(25), two(60), two(61))
  const fraction = fc.oneof(
    fc.constant(''),
    fc.stringMatching(/^\d{1,12}$/).map((digits) => `.${digits}`),
  )
  fc.assert(
    fc.property(parts, fraction, ([y, month, day, hour, minute, second], rest) => {
      const date = `${y}-${month}-${day}`
      const time = `${hour}:${minute}:${second}${rest}`
      expect(instantOf(`${date}T${time}Z`)).toBe(instantOf(`${date} ${time}Z`))
    }),
    { numRuns: 2000 },
  )
  expect(instantOf('2024-02-29T23:59:59.5Z')).toBe('2024-02-29T23:59:59.500000000')
  expect(instantOf('2026-12-31T00:00:00Z')).toBe('2026-12-31T00:00:00.000000000')
  for (const invalid of ['2025-02-29', '2026-04-31', '2026-06-31', '2026-00-10', '2026-13-10'])
    expect(instantOf(`${invalid}T00:00:00Z`)).toBe('')
  expect(instantOf('0000-01-01T00:00:00Z')).toBe('')
})

test.each(['+99:99', '+24:00', '-24:00', '+05:60', '-9999', '+2400', '+0060'])(
  'a time in the zone %s, which cannot exist, is no time',
  (zone) => {
    expect(instantOf(`2026-11-25T20:00:00${zone}`)).toBe('')
    expect(readSince(`2026-11-25T20:00:00${zone}`, 0)).toBeNull()
  },
)

test('a zone within the limits of RFC 3339 is counted, and no time of a day is after 24:00:00', () => {
  expect(instantOf('2026-11-25T20:00:00+23:59')).toBe('2026-11-24T20:01:00.000000000')
  expect(instantOf('2026-11-25T20:00:00-2359')).toBe('2026-11-26T19:59:00.000000000')
  expect(instantOf('2026-11-25T20:00:00-00:00')).toBe('2026-11-25T20:00:00.000000000')
  expect(instantOf('2026-11-25T24:00:00Z')).toBe('2026-11-26T00:00:00.000000000')
  for (const late of ['24:00:01', '24:01', '24:59:60']) expect(instantOf(`2026-11-25T${late}Z`)).toBe('')
})

test.each([
  ['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Sunday, 06-Nov-26 08:49:37 GMT', '2026-11-06T08:49:37.000Z'],
  ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37.000Z'],
  ['Sat Nov 26 08:49:37 1994', '1994-11-26T08:49:37.000Z'],
  ['Tue, 29 Feb 2028 23:59:59 GMT', '2028-02-29T23:59:59.000Z'],
])('the HTTP date %s is GMT', (text, iso) => {
  expect(readHttpDate(text)).toBe(Date.parse(iso))
})

test.each([
  'Sun Nov 6 08:49:37 1994',
  'Sun Nov  6 08:49:37 1994 GMT',
  'Sun, 06 Nov 1994 08:49:37',
  'Sun, 06 Nov 1994 08:49:37 +0100',
  'Sun, 6 Nov 1994 08:49:37 GMT',
  'Sun, 31 Feb 2027 08:49:37 GMT',
  'Sun, 06 Nov 1994 24:00:00 GMT',
  'Sun, 06 Nov 1994 08:61:37 GMT',
  'Foo, 06 Bar 1994 08:49:37 GMT',
  '1994-11-06T08:49:37Z',
  '784111777',
  '',
])('%s is no HTTP date', (text) => expect(readHttpDate(text)).toBeNull())

test.each([
  ['120', 120_000],
  [' 0 ', 0],
  ['0120', 120_000],
  ['Thu, 01 Jan 1970 00:01:30 GMT', 90_000],
  ['Thu Jan  1 00:01:30 1970', 90_000],
  ['Wed, 31 Dec 1969 23:00:00 GMT', 0],
  ['-3', null],
  ['+3', null],
  ['1.5', null],
  ['1e3', null],
  ['0x10', null],
  ['"2"', null],
  ['2s', null],
  ['2, 3', null],
  ['1970-01-01T00:01:30Z', null],
  ['soon', null],
  ['', null],
  [['2', '3'], null],
  [undefined, null],
])('Retry-After %j is %s ms', (value, ms) => expect(readRetryAfter(value, 0)).toBe(ms))
