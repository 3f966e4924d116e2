import { describe, expect, test } from 'vitest'
import { withoutCommand } from '../../../src/features/pages/open-text.ts'
import { groupUnchanged, judgeRuns } from '../../../src/features/pages/pages/runs/outcomes.ts'
import { ageWords, agesOf } from '../../../src/features/pages/pages/runs/ticks.ts'
import { HOUR_MS } from '../../../src/base/time.ts'
import type { Run } from '../../../src/store/runs/runs.ts'

let last = 0
function run(state: Run['state'], snapshot: string | null, source: Run['source'] = 'osv'): Run {
  last++
  const more = { kind: 'sync', trigger: 'schedule', pid: 1, asOf: null, code: null, message: null, facts: {} } as const
  return { ...more, id: last, source, startedAt: last, endedAt: last, state, snapshot }
}

describe('a run that ended well', () => {
  test('changed something where its snapshot is another one than that of the run before of its source', () => {
    const runs = [
      run('complete', 'a'),
      run('complete', 'x', 'feeds'),
      run('complete', 'a'),
      run('failed', 'b'), // published nothing
      run('complete', 'a'),
      run('complete', 'b'),
      run('quarantined', 'b'),
      run('complete', 'x', 'feeds'),
    ]
    const outcomes = judgeRuns(runs.reverse()).map(({ outcome }) => outcome)
    expect(outcomes.reverse()).toEqual([
      ...['complete', 'complete', 'unchanged', 'failed', 'unchanged', 'changed', 'quarantined', 'unchanged'],
    ])
  })

  test('is in one line with those beside it that changed nothing', () => {
    const runs = ['a', 'a', 'a', 'b', 'b', 'c'].map((snapshot) => run('complete', snapshot))
    const lines = groupUnchanged(judgeRuns(runs.reverse()))
    expect(lines.map((line) => ('run' in line ? line.outcome : line.unchanged.length))).toEqual([
      ...['changed', 'unchanged', 'changed', 2, 'complete'],
    ])
  })
})

test('a text for clients without a key has no clause that names a command, and what remains is whole', () => {
  expect(withoutCommand('no run: "patchmirror sync osv" tries again, "patchmirror runs 3" shows it')).toBe('no run')
  expect(withoutCommand('It failed. Run "patchmirror doctor". It is old.')).toBe('It failed. It is old.')
  expect(withoutCommand('2 added; "patchmirror runs 6" shows the rest')).toBe('2 added')
  expect(withoutCommand('not judged yet: the daemon (patchmirror serve) judges them')).toBe(
    'not judged yet: the daemon judges them',
  )
  expect(withoutCommand('Run "patchmirror doctor": it fetches it again, beside a daemon. It is old.')).toBe(
    'It is old.',
  )
  expect(withoutCommand('damaged; "patchmirror doctor" says why. Old data is served.')).toBe(
    'damaged. Old data is served.',
  )
  expect(withoutCommand('2 known (others are in "patchmirror runs 6"; until then it stays); 1 is old')).toBe(
    '2 known; 1 is old',
  )
  expect(withoutCommand('the log of patchmirror: has it')).toBe('the log of patchmirror: has it')
})

describe('the age of the data', () => {
  const NOW = 1000 * HOUR_MS
  /** A run that ended so many hours ago with data as of an hour before that. */
  const ended = (hours: number, state: Run['state'] = 'complete'): Run => {
    const endedAt = NOW - hours * HOUR_MS
    return { ...run(state, 'a'), endedAt, asOf: state === 'complete' ? endedAt - HOUR_MS : null }
  }
  const inHours = (runs: readonly Run[]) =>
    agesOf(runs, NOW)?.map(({ at, age }) => [(NOW - at) / HOUR_MS, age / HOUR_MS]) ?? null

  test('grows, and falls when a run confirms them; one that failed or was refused confirms nothing', () => {
    const runs = [ended(2, 'quarantined'), ended(3), ended(5, 'failed'), ended(10), ended(50)]
    expect(inHours(runs)).toEqual([
      [48, 3],
      [10, 41],
      [10, 1],
      [3, 8],
      [3, 1],
      [0, 4],
    ])
  })

  test('is said with the time of which it is known, where that is a part of what is shown', () => {
    const words = (runs: readonly Run[]) => ageWords(agesOf(runs, NOW) ?? [], NOW)
    expect(words([ended(3), ended(50)])).toBe('4 h 0 min old, 2 d 0 h at most')
    expect(words([ended(3)])).toBe('4 h 0 min old, 4 h 0 min at most in the 3 h 0 min that are known')
  })

  test('begins with the first run that is known, and has no line without one', () => {
    expect(inHours([ended(1)])).toEqual([
      [1, 1],
      [0, 2],
    ])
    expect(inHours([ended(60)])).toEqual([
      [48, 13],
      [0, 61],
    ])
    expect(inHours([ended(1, 'failed')])).toBeNull()
    expect(inHours([])).toBeNull()
  })

  test('rises with an import of older data', () => {
    const imported = { ...ended(4), kind: 'import', asOf: NOW - 30 * HOUR_MS } as const
    expect(inHours([imported, ended(6)])?.slice(-3)).toEqual([
      [4, 3],
      [4, 26],
      [0, 30],
    ])
  })

  test('is 0 where upstream’s date is in the future', () => {
    expect(inHours([{ ...ended(1), asOf: NOW + HOUR_MS }])).toEqual([
      [1, 0],
      [0, 0],
    ])
  })
})
