import { expect, test } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { logRun } from '../../src/daemon/log-lines.ts'
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
