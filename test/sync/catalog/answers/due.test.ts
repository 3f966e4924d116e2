import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { loadQuick } from '../../../support/limits.ts'
import { isConfirmationDue } from '../../../../src/sync/catalog/answers/due.ts'

const HOUR = 3_600_000
const NOON = Date.parse('2026-05-04T12:00:00Z')
const { config } = loadQuick({ env: {}, cwd: tmpdir() })

test('an answer is asked for again in the second half of its time, and where a clock that was ahead dated it', () => {
  const isDue = (ageHours: number): boolean =>
    isConfirmationDue({ config, now: () => NOON }, { path: '/v1/a', confirmedAt: NOON - ageHours * HOUR })
  const { reconcileHours } = config.catalog
  expect(isDue(0)).toBe(false)
  expect(isDue(reconcileHours * 0.49)).toBe(false)
  expect(isDue(reconcileHours)).toBe(true)
  expect(isDue(-1)).toBe(true)
  expect(isDue(-365 * 24)).toBe(true)
})
