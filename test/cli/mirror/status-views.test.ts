import { expect, test } from 'vitest'
import { describeViews } from '../../../src/cli/mirror/status.ts'

const NONE = {
  snapshot: null,
  madeAt: null,
  making: false,
  failing: false,
  odd: null,
  unread: null,
}

test('the status has a line with the state of the views, their time and their fault', () => {
  expect(describeViews({ kind: 'vex', state: 'none', ...NONE })).toBe('views of vex: none')
  const made = { ...NONE, snapshot: 'ab', madeAt: '2026-07-01T00:00:00.000Z' }
  expect(describeViews({ kind: 'osv', state: 'current', ...made, odd: 0 })).toBe(
    'views of osv: current, made on 2026-07-01 00:00:00Z',
  )
  const troubled = { ...made, making: true, failing: true, odd: 2 }
  expect(describeViews({ kind: 'osv', state: 'behind', ...troubled })).toMatch(
    /^views of osv: behind, made on .*, being built, the last try failed: see the log, 2 records with an invalid package$/,
  )
  expect(describeViews({ kind: 'osv', state: 'current', ...NONE, odd: 1 })).toMatch(
    / 1 record with an invalid package$/,
  )
  expect(describeViews({ kind: 'vex', state: 'behind', ...NONE, unread: 2 })).toBe(
    'views of vex: behind, 2 documents are damaged and missing: patchmirror verify --repair',
  )
  expect(describeViews({ kind: 'vex', state: 'current', ...NONE, unread: 0 })).toBe(
    'views of vex: current',
  )
})
