import { describe, expect, test } from 'vitest'
import { generateRecord } from '../../src/sandbox/feed/generate.ts'
import { telling } from '../support/tables.ts'
import { BENIGN, HOSTILE, judged, mutated } from './hostile.ts'

const RECORDS = Array.from({ length: 100 }, (_, i) => generateRecord({ seed: 1 }, i).bytes)

describe('a feed in which', () => {
  test.each(
    telling(
      HOSTILE,
      'the last number of fixes is one lower',
      'fixes become a last affected version 0',
      'the first package alone changes its ecosystem',
      'every vector says no impact',
      'only id and date are left',
      'records are withdrawn',
      'records are modified in the year 9999',
    ),
  )('%s raises a doubt: %s', (_name, kind, mutate) => {
    const verdict = judged(
      RECORDS.map((one) => [one, mutated(one, mutate)] as const),
      100,
    )
    expect(`${verdict.refusal ?? ''} ${verdict.warning ?? ''}`).toContain(`(guard.${kind}`)
  })

  test.each(telling(BENIGN, 'a fix is raised', 'a date moves'))(
    '%s is believed',
    (_name, mutate) => {
      const verdict = judged(
        RECORDS.map((one) => [one, mutated(one, mutate)] as const),
        100,
      )
      expect(verdict).toMatchObject({ refusal: null, warning: null, lines: [], notCompared: 0 })
    },
  )
})
