import { expect } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { SOURCES } from '../../src/base/domain/sources.ts'
import { describeRunProgress } from '../../src/base/domain/progress.ts'
import type { Progress } from '../../src/sync/context.ts'
import { noteProgress } from '../../src/sync/progress.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { SMALL, bench } from './catalog/fixtures.ts'

test('the progress of a run is known until the run ends, also without a report', () => {
  const ended: string[] = []
  const runs = noteProgress({
    onEnded: ({ source }) => ended.push(source),
  })
  const begin = (source: Progress['source']): void =>
    runs.onProgress({ source, phase: 'items', unit: 'items', done: 1, total: 2 })
  const known = () => (['osv', 'feeds', 'catalog'] as const).filter((one) => runs.progressOf(one) !== null)
  for (const source of ['osv', 'feeds', 'catalog'] as const) begin(source)
  expect(known()).toEqual(['osv', 'feeds', 'catalog'])
  runs.onEnded({ source: 'feeds' } as Run)
  expect([known(), ended]).toEqual([['osv', 'catalog'], ['feeds']])
  runs.onRunLost('catalog')
  expect(known()).toEqual(['osv'])
  begin('feeds')
  runs.onRunLost(null)
  expect(known()).toEqual([])
})

longTest('a run of any source reports the requests that it repeats, and why', async () => {
  const seen: Progress[] = []
  const made = await bench(SMALL, { onProgress: (progress) => seen.push(progress) })
  const closed = 'http://127.0.0.1:9'
  const env = {
    LIMIT_UPSTREAM_RETRIES: '1',
    PATCHMIRROR_UPSTREAM_API_ROOT: closed,
    PATCHMIRROR_IDENTITY_API_URL: `${closed}/v1`,
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
  }
  for (const source of SOURCES) {
    seen.length = 0
    const before = Date.now()
    expect(await made.runWith(env, source)).toMatchObject({ state: 'failed' })
    const [first] = seen.filter(({ retry }) => retry !== undefined)
    expect(first?.source).toBe(source)
    expect(first?.retry?.reason).toContain('127.0.0.1:9')
    expect(Date.parse(first?.retry?.nextAt ?? '')).toBeGreaterThanOrEqual(before)
    expect(first && describeRunProgress(first)).toMatch(/^[a-z ]+; a request failed and is repeated: ./)
  }
})

test('the progress after a repeated request is without it', async () => {
  const seen: Progress[] = []
  const made = await bench(SMALL, { onProgress: (progress) => seen.push(progress) })
  made.sandbox.faults.set('/external/osv/all.json', { kind: 'status', status: 503 }, { times: 1 })
  expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { retries: 1 } })
  const retried = seen.filter(({ retry }) => retry !== undefined)
  expect(retried).toHaveLength(1)
  expect(retried[0]).toMatchObject({ phase: 'index', done: 0, total: null })
  expect(seen.at(-1)?.retry).toBeUndefined()
})
