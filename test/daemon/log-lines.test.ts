import { expect, test } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { logRetries, logRun } from '../../src/daemon/log-lines.ts'
import type { Progress } from '../../src/sync/context.ts'
import type { Run } from '../../src/store/runs/runs.ts'

test.each([
  ['complete', 'info'],
  ['stopped', 'info'],
  ['partial', 'warn'],
  ['quarantined', 'warn'],
  ['failed', 'error'],
] as const)('a run that ended %s is logged at level %s', (state, level) => {
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'json' }, (line) => lines.push(line))
  const run: Run = {
    ...{ id: 1, source: 'osv', kind: 'sync', trigger: 'schedule', pid: 1, state, facts: {} },
    ...{ startedAt: 1, endedAt: 2, asOf: null, snapshot: null, code: null, message: 'so' },
  }
  logRun(log, run)
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level, state })
})

test('repeated requests are logged once a minute for each source, and all progress is passed on', () => {
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'json' }, (line) => lines.push(line))
  const passed: Progress[] = []
  const report = logRetries(log, (progress) => passed.push(progress))
  const plain = { phase: 'index', unit: 'records', done: 0, total: null } as const
  const retry = { reason: 'no connection', nextAt: '2026-01-01T00:00:00.000Z' }
  for (let i = 0; i < 3; i++)
    for (const source of ['osv', 'feeds'] as const) {
      report({ source, ...plain })
      report({ source, ...plain, retry })
    }
  expect(passed).toHaveLength(12)
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 'warn', source: 'osv', msg: 'osv: a request failed and is repeated: no connection' },
    { level: 'warn', source: 'feeds' },
  ])
})
