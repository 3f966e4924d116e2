import { expect, test } from 'vitest'
import type { Progress } from '../../src/sync/context.ts'
import { noteProgress } from '../../src/sync/progress.ts'
import type { RunReport } from '../../src/sync/runner.ts'

test('the progress of a run is known until the run ends, also without a report', () => {
  const ended: string[] = []
  const runs = noteProgress({
    onEnded: ({ source }) => ended.push(source),
  })
  const begin = (source: Progress['source']): void =>
    runs.onProgress({ source, phase: 'items', unit: 'items', done: 1, total: 2 })
  const known = () =>
    (['osv', 'feeds', 'catalog'] as const).filter((one) => runs.progressOf(one) !== null)
  for (const source of ['osv', 'feeds', 'catalog'] as const) begin(source)
  expect(known()).toEqual(['osv', 'feeds', 'catalog'])
  runs.onEnded({ source: 'feeds' } as RunReport)
  expect([known(), ended]).toEqual([['osv', 'catalog'], ['feeds']])
  runs.onRunLost('catalog')
  expect(known()).toEqual(['osv'])
  begin('feeds')
  runs.onRunLost(null)
  expect(known()).toEqual([])
})
