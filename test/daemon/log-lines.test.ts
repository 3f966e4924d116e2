import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { createRunLog, logRetries, logRun, warnOnce } from '../../src/daemon/log-lines.ts'
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
    id: 1,
    source: 'osv',
    kind: 'sync',
    trigger: 'schedule',
    pid: 1,
    state,
    facts: {},
    startedAt: 1,
    endedAt: 2,
    asOf: null,
    snapshot: null,
    code: null,
    message: 'so',
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

test('what several runs fail for is one error, with what helps, until no run fails for it', () => {
  const lines: { level: string; msg: string }[] = []
  const add = (line: string): void => void lines.push(JSON.parse(line) as (typeof lines)[number])
  const log = createLog({ level: 'info', format: 'json' }, add)
  const ended = createRunLog(log, () => 1_700_000_000_000)
  const run = (source: Run['source'], code: string | null): Run => ({
    id: 1,
    source,
    kind: 'sync',
    trigger: 'schedule',
    pid: 1,
    state: code === null ? 'complete' : 'failed',
    facts: {},
    startedAt: 1,
    endedAt: 2,
    asOf: null,
    snapshot: null,
    code,
    message: 'no connection',
  })
  for (let hour = 0; hour < 3; hour++)
    for (const source of ['feeds', 'osv', 'catalog'] as const) ended(run(source, 'upstream_unreachable'))
  const errors = lines.filter(({ level }) => level === 'error')
  expect(errors).toHaveLength(1)
  expect(errors[0]?.msg).toContain('no connection. What is stored is served. "patchmirror doctor"')
  expect(lines[1]?.msg).toContain('this cause is known since 2023-11-14T22:13:20.000Z')
  for (const source of ['feeds', 'osv', 'catalog'] as const) ended(run(source, null))
  const over = lines.filter(({ msg }) => msg.includes('any more'))
  expect(over).toHaveLength(1)
  ended(run('osv', 'upstream_unreachable'))
  ended(run('osv', 'upstream_shape'))
  expect(lines.filter(({ level }) => level === 'error')).toHaveLength(3)
})

test('an equal warning of what is retried is logged once, another one at once', () => {
  const lines: string[] = []
  const warn = warnOnce(createLog({ level: 'debug', format: 'json' }, (line) => lines.push(line)))
  for (const text of ['one', 'one', 'two', 'one', 'one']) warn(text)
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['one', 'two', 'one'])
})
