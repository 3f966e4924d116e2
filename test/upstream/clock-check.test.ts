import { expect, test } from 'vitest'
import { createClockWatch } from '../../src/upstream/clock-check.ts'

const NOW = Date.parse('2026-07-01T12:00:00Z')
const MINUTE = 60_000

function watch(answers: { date?: number; age?: string }[]): string[] {
  const warnings: string[] = []
  const clock = createClockWatch((text) => warnings.push(text))
  for (const { date, age } of answers) {
    const headers = {
      ...(date !== undefined && { date: new Date(date).toUTCString() }),
      ...(age !== undefined && { age }),
    }
    clock.observe(headers, NOW - 500, NOW)
  }
  return warnings
}

test('a local clock that differs from upstream’s dates is logged once as a warning', () => {
  const behind = watch([1, 2, 3].map(() => ({ date: NOW + 10 * MINUTE })))
  expect(behind).toEqual([expect.stringContaining("10 min behind upstream's")])
  const ahead = watch([1, 2].map(() => ({ date: NOW - 180 * MINUTE })))
  expect(ahead).toEqual([expect.stringContaining("3 h 0 min ahead of upstream's")])
})

test.each([
  ['within two minutes', [{ date: NOW - 119_000 }, { date: NOW + 119_000 }]],
  ['answers of a cache', [1, 2].map(() => ({ date: NOW - 10 * MINUTE, age: '600' }))],
  ['old answers of different ages', [{ date: NOW - 10 * MINUTE }, { date: NOW - 20 * MINUTE }]],
  ['without a date', [{}, {}]],
])('no clock warning is logged: %s', (_, answers) => {
  expect(watch(answers)).toEqual([])
})
