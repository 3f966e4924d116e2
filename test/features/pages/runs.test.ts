import { describe, expect, test } from 'vitest'
import { withoutCommand } from '../../../src/features/pages/open-text.ts'
import { groupUnchanged, judgeRuns } from '../../../src/features/pages/pages/runs/outcomes.ts'
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

test('a text for clients without a key has no clause that names a command', () => {
  expect(withoutCommand('no run: "patchmirror sync osv" tries again, "patchmirror runs 3" shows it')).toBe('no run')
  expect(withoutCommand('It failed. Run "patchmirror doctor". It is old.')).toBe('It failed. It is old.')
  expect(withoutCommand('2 added; "patchmirror runs 6" shows the rest')).toBe('2 added')
  expect(withoutCommand('the log of patchmirror: has it')).toBe('the log of patchmirror: has it')
})
