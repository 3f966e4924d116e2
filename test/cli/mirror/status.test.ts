import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { SourceState, SourceStatus } from '../../../src/base/reports/sources.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import { withTakenPort } from '../../../src/cli/daemon-client.ts'
import { parseMaxAge, statusCode, statusExitCode } from '../../../src/cli/mirror/status/code.ts'
import { describeCompared, describeLists, describeProblems } from '../../../src/cli/mirror/status/lines.ts'
import { watch } from '../../../src/cli/mirror/watch.ts'
import { loadQuick } from '../../support/limits.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import { acquireLock, announceAddress, announceInstance } from '../../../src/store/database/lock.ts'
import type { SourceName } from '../../../src/base/domain/sources.ts'
import { sourceStatus } from '../../support/source-status.ts'

const HOUR = 3600

function source(name: SourceName, state: SourceState, ageSeconds: number | null = HOUR): SourceStatus {
  const at = state === 'never' ? null : '2026-07-01T00:00:00.000Z'
  const id = state === 'never' ? null : 'ab'.repeat(32)
  return sourceStatus(name, {
    state,
    snapshot: id,
    served: id,
    contentDigest: null,
    comparedAt: at,
    asOf: at,
    ageSeconds: at === null ? null : ageSeconds,
    missing: 0,
  })
}

/** Of feeds and osv, in these states; the first as old as given. */
function statusOf(states: readonly SourceState[], ageSeconds: number | null = HOUR): Status {
  const [feeds = 'complete', osv = 'complete'] = states
  const sources = [source('feeds', feeds, ageSeconds), source('osv', osv)]
  const storage = { state: 'ok', reason: null, freeBytes: 1e9 } as const
  return {
    version: '1',
    instance: null,
    uptimeSeconds: null,
    sources,
    contentDigest: null,
    storage,
    relay: [],
    bundle: null,
  }
}

const { config } = loadQuick({
  env: { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9' },
  cwd: tmpdir(),
})

test.each<[number, SourceState[], number?]>([
  [0, ['complete', 'complete']],
  [0, ['running', 'complete']],
  [0, ['stopped', 'complete']],
  [1, ['failed', 'complete']],
  [4, ['quarantined', 'complete']],
  [3, ['partial', 'complete']],
  [3, ['never', 'complete']],
  [3, ['complete', 'complete'], 27 * HOUR], // older than sync.maxAgeHours
  [1, ['failed', 'quarantined']],
  [1, ['partial', 'failed']],
  [4, ['partial', 'quarantined']],
  [4, ['quarantined', 'never']],
  [4, ['complete', 'quarantined'], 27 * HOUR],
  [1, ['failed', 'complete'], 27 * HOUR],
])('the command status exits %i for %j (age %s)', (code, states, age) => {
  expect(statusExitCode(statusOf(states, age), config)).toBe(code)
})

test('the command status exits 1 while a part of what is stored is known to be damaged', () => {
  const verified = { endedAt: '2026-07-01T00:00:00.000Z', damaged: ['record A'], damagedCount: 1, healed: null }
  const status = statusOf(['complete', 'complete'])
  expect(statusExitCode({ ...status, verified }, config)).toBe(1)
  expect(statusExitCode({ ...status, verified: { ...verified, damaged: [], damagedCount: 0 } }, config)).toBe(0)
})

test('the command status exits 3 where a stored source is not synced any more, and 1 where a run failed too', () => {
  const status = statusOf(['complete', 'complete'])
  const unsynced = 'served as it is stored, not synced'
  const withCatalog = (state: SourceState): Status => ({
    ...status,
    sources: [...status.sources, { ...source('catalog', state), unsynced }],
  })
  expect(statusExitCode(withCatalog('complete'), config)).toBe(3)
  expect(statusExitCode(withCatalog('failed'), config)).toBe(1)
})

test.each(['full', 'failing'] as const)('status exits 1 when the data folder is %s', (state) => {
  const storage = { state, reason: 'why', freeBytes: 0 }
  expect(statusExitCode({ ...statusOf(['quarantined', 'partial']), storage }, config)).toBe(1)
})

test('the exit code of status ignores a source that the settings do not include', () => {
  const status = statusOf(['complete', 'complete'])
  const sources = [...status.sources, source('catalog', 'never')]
  expect(statusExitCode({ ...status, sources }, config)).toBe(0)
})

test.each<[code: number, age: string, states: SourceState[], ageSeconds: number]>([
  [0, '90m', ['complete', 'complete'], 1.5 * HOUR],
  [3, '90m', ['complete', 'complete'], 1.5 * HOUR + 1],
  [0, '2d', ['complete', 'complete'], 40 * HOUR], // above sync.maxAgeHours: the given limit applies
  [3, '26h', ['failed', 'complete'], 27 * HOUR], // the age comes first
  [1, '26h', ['failed', 'complete'], HOUR],
  [3, '26h', ['never', 'complete'], HOUR],
])('the command status exits %i with --max-age %s for %j (age %i s)', (code, age, states, seconds) => {
  expect(statusCode(statusOf(states, seconds), config, parseMaxAge(age))).toBe(code)
})

test('the command status says of sources that are older than their setting what to do', () => {
  const old = statusOf(['complete', 'complete'], 27 * HOUR)
  expect(describeProblems(old, config).slice(0, 2)).toEqual([
    'PROBLEM: feeds: older than its policy',
    '  older than sync.maxAgeHours (26)',
  ])
  expect(describeProblems(old, config).at(-1)).toBe('  patchmirror sync feeds')
  const target = { ...config, upstream: { ...config.upstream, apiRoot: null } }
  expect(describeProblems(old, target).at(-1)).toBe('  patchmirror bundle import FILE')
  const reader = {
    ...target,
    fleet: { ...config.fleet, url: 'file:///store', role: 'reader' as const },
  }
  expect(describeProblems(old, reader).at(-1)).toBe('  patchmirror fleet status')
  const unset = { ...old, sources: [source('catalog', 'never')] }
  expect(describeProblems(unset, config)).toEqual([])
})

test('the status names the reconcile only where this mirror has an upstream to compare with', () => {
  const status = statusOf(['complete', 'complete'])
  const never = (nextRunAt: string | null): Status => ({
    ...status,
    sources: status.sources.map((one) => ({ ...one, comparedAt: null, nextRunAt })),
  })
  const next = '2026-07-01T01:00:00.000Z'
  const { config: target } = loadQuick({ env: {}, cwd: tmpdir() })
  const hint = [expect.stringContaining('"patchmirror sync osv --reconcile"')]
  expect(describeCompared(never(next), config, 'daemon')).toEqual(hint)
  expect(describeCompared(never(null), config, 'folder')).toEqual(hint)
  expect(describeCompared(never(null), config, 'daemon')).toEqual([]) // serve --offline
  expect(describeCompared(never(null), target, 'folder')).toEqual([])
  expect(describeCompared(status, target, 'folder')).toHaveLength(1)
})

test('no limit permits an age that is not known, since the date is later than the clock', () => {
  const status = statusOf(['complete', 'complete'], null)
  const said: string[] = []
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0)
  onTestFinished(() => spy.mockRestore())
  expect(statusExitCode(status, config)).toBe(3)
  expect(statusCode(status, config, parseMaxAge('9999d'))).toBe(3)
  expect(said).toEqual([
    expect.stringContaining("feeds is dated 2026-07-01T00:00:00.000Z, later than this machine's clock"),
  ])
  const lines = describeProblems(status, config)
  expect(lines[0]).toMatch(/^PROBLEM: feeds.*: its age is not known$/)
  expect(lines[1]).toMatch(/^ {2}later than this machine's clock.* Set the clock/)
})

test('the status names a source whose newest snapshot was stored at a time that is still to come', () => {
  const { sources } = statusOf(['complete', 'complete'])
  const at = '2026-07-01T02:00:00.000Z'
  const stored = sources.map((one) => ({ ...one, lastChangeAt: one.name === 'osv' ? at : null }))
  const now = Date.parse('2026-07-01T00:00:00Z')
  const future = (sources: Status['sources'], at: number): string[] =>
    describeProblems({ ...statusOf([]), sources }, config, at).filter((one) => one.includes('future'))
  expect(future(stored, now)).toEqual(['WARNING: osv: the newest snapshot lies in the future'])
  expect(future(stored, Date.parse(at) - 60_000)).toEqual([]) // clocks differ a little
  expect(future(sources, now)).toEqual([])
})

test.each(['', '26', 'h', '0h', '-1h', '1h30m', '26 hours', '1e3h', '0s'])(
  '--max-age %j is a usage error that shows what is allowed',
  (text) => {
    expect(() => parseMaxAge(text)).toThrow(/is not an age: write .* such as 30s, 90m, 26h or 7d/)
  },
)

test('commands find the daemon of a data folder at the port that it took, where the port of server.listen is 0', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-port-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const open = { ...config, data: { ...config.data, dir }, server: { ...config.server, port: 0 } }
  expect(withTakenPort(open).server.port).toBe(0)
  const lock = acquireLock(dir, 'serve')
  onTestFinished(() => lock.release())
  announceAddress(dir, announceInstance(dir), { port: 4711 })
  expect(withTakenPort(open).server.port).toBe(4711)
  expect(withTakenPort({ ...open, server: { ...open.server, port: 80 } }).server.port).toBe(80)
})

test('the command status --watch prints the status again, also after an error, until a signal', async () => {
  let views = 0
  const code = watch(
    () => {
      views++
      if (views === 1) return Promise.reject(new MirrorError('not_ready', 'nothing is mirrored yet'))
      process.emit('SIGINT')
      return Promise.resolve()
    },
    { clears: false, pauseMs: 1 },
  )
  expect([await code, views]).toEqual([0, 2])
})

test('lists that are cut, and lists whose end is not proved, are named with the reason', () => {
  const status = statusOf(['complete', 'complete'])
  const [one, ...others] = status.sources
  if (one === undefined) throw new Error('there is no source')
  const partialLists = [{ path: '/v1/tags', reason: 'upstream counts 3 items' }]
  const unprovedLists = [{ path: '/v1/patches', reason: 'it has 25 items' }]
  const sources = [{ ...one, partialLists, unprovedLists }, ...others]
  expect(describeLists({ ...status, sources })).toEqual([
    'feeds: /v1/tags is not known to be complete: upstream counts 3 items',
    'feeds: the end of /v1/patches is not proved: it has 25 items',
  ])
})
