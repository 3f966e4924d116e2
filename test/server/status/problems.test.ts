import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { problemsOf } from '../../../src/server/status/problems.ts'
import { type ReportOptions, createStatusReports } from '../../../src/server/status/reports.ts'
import { judgeReadiness } from '../../../src/server/status/readiness.ts'
import type { SourceStatus } from '../../../src/base/reports/sources.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import { loadQuick } from '../../support/limits.ts'
import type { SourceName } from '../../../src/base/domain/sources.ts'
import { sourceStatus as source } from '../../support/source-status.ts'

const { config } = loadQuick({
  env: {
    PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.example.com',
    PATCHMIRROR_UPSTREAM_API_KEY: 'k',
  },
  cwd: tmpdir(),
})

function failed(name: SourceName, code: string, at: string, more: Partial<SourceStatus> = {}) {
  const run = {
    id: 7,
    kind: 'sync',
    state: 'failed',
    facts: {},
    startedAt: at,
    endedAt: at,
  } as const
  const lastRun = { ...run, code, message: `why of ${name}` }
  return source(name, { state: 'failed', failingSince: at, lastRun, ...more })
}

function status(sources: SourceStatus[], more: Partial<Status> = {}): Status {
  return {
    version: 'test',
    instance: null,
    uptimeSeconds: null,
    sources,
    contentDigest: null,
    storage: { state: 'ok', reason: null, freeBytes: 1 },
    relay: [],
    bundle: null,
    ...more,
  }
}

const T1 = '2026-07-01T06:00:00.000Z'
const T2 = '2026-07-01T06:05:00.000Z'
const OLD = { ageSeconds: 30 * 3600 }
const NOW = Date.parse(T2)

test('an import that failed below a gap is followed by another one, and where upstream is set by a sync', () => {
  const { wrongRun } = failed('feeds', 'aborted', T1)
  const feeds = failed('feeds', 'aborted', T1, { wrongRun: wrongRun && { ...wrongRun, kind: 'import' } })
  const { config: below } = loadQuick({ env: {}, cwd: tmpdir() })
  const adviceOf = (its: typeof config) => problemsOf(status([feeds]), its, NOW)[0]?.advice
  expect(adviceOf(below)).toEqual(['patchmirror runs 7', 'patchmirror bundle import FILE'])
  expect(adviceOf(config)).toEqual(['patchmirror runs 7', 'patchmirror sync feeds'])
})

test('sources that fail because the service cannot be reached are one problem, with its start and what is served', () => {
  const sources = [
    failed('feeds', 'upstream_unreachable', T2, OLD),
    failed('osv', 'upstream_unreachable', T1, OLD),
    failed('catalog', 'upstream_unreachable', T2),
  ]
  expect(problemsOf(status(sources, { uptimeSeconds: 9 }), config, NOW)).toEqual([
    {
      code: 'unreachable',
      level: 'failed',
      subject: 'feeds, osv, catalog',
      text: 'the service cannot be reached',
      detail: 'why of feeds',
      since: T1,
      effect: 'data of 2026-07-01T05:58:00.000Z is served, older than sync.maxAgeHours (26)',
      advice: ['patchmirror doctor'],
      unready: true,
      sources: ['feeds', 'osv', 'catalog'],
    },
  ])
})

test('a report without a daemon says of no data that it is served', () => {
  const sources = [failed('osv', 'upstream_unreachable', T1), source('catalog', { ...OLD })]
  const full = { state: 'full', reason: 'no room', freeBytes: 0 } as const
  for (const found of problemsOf(status(sources, { storage: full }), config, NOW))
    expect(found.effect).toMatch(/^data of 2026\S+ is stored|^nothing new is stored$/)
})

test('sources that cannot reach two hosts are two problems, and one whose host is not known claims no third', () => {
  const at = (name: SourceName, host: string) => {
    const one = failed(name, 'upstream_unreachable', T1)
    return { ...one, wrongRun: one.wrongRun && { ...one.wrongRun, message: `${host}: connect ETIMEDOUT` } }
  }
  const sources = [
    at('catalog', 'why it failed is in the log'),
    at('feeds', 'https://api.example.com/external/patch_feed'),
    at('identity', 'https://id.example.com/v1/users'),
    at('osv', 'https://api.example.com/external/osv/all.json'),
  ]
  const found = problemsOf(status(sources), config, NOW)
  expect(found.map(({ code, subject }) => [code, subject])).toEqual([
    ['unreachable', 'feeds, osv, catalog'],
    ['unreachable', 'identity'],
  ])
})

test.each([
  [null, 'what is missing is not served, or in an older version; no run was complete yet'],
  [T1, `what is missing is not served, or in an older version; the last complete run ended on ${T1}`],
])('a partial source says since when it is incomplete: last complete %s', (lastSuccessAt, effect) => {
  const [found] = problemsOf(status([source('osv', { state: 'partial', lastSuccessAt })]), config, NOW)
  expect(found).toMatchObject({ code: 'partial', effect })
})

test('another cause is another problem', () => {
  const sources = [
    failed('feeds', 'upstream_unreachable', T1),
    failed('osv', 'upstream_shape', T1),
    failed('catalog', 'upstream_auth', T1),
  ]
  const found = problemsOf(status(sources), config, NOW)
  expect(found.map(({ code, subject }) => [code, subject])).toEqual([
    ['unreachable', 'feeds'],
    ['run_failed', 'osv'],
    ['unauthorized', 'catalog'],
  ])
  expect(found[1]?.advice).toEqual(['patchmirror runs 7', 'patchmirror sync osv'])
})

test('public feeds that are refused are not a refused credential, and are told apart from one', () => {
  const sources = (['feeds', 'osv', 'catalog'] as const).map((name) => failed(name, 'upstream_auth', T1))
  const found = problemsOf(status(sources), config, NOW)
  expect(found.map(({ code, subject, text, detail }) => [code, subject, text, detail])).toEqual([
    ['unauthorized', 'feeds, osv', expect.stringContaining('without a credential'), 'why of feeds'],
    ['unauthorized', 'catalog', 'the service refuses the credential', 'why of catalog'],
  ])
})

test('a refused request without a credential is not a refused credential', () => {
  const catalog = failed('catalog', 'upstream_auth', T1)
  const run = catalog.wrongRun && { ...catalog.wrongRun, facts: { needsCredential: 1 } }
  const found = problemsOf(
    status([{ ...catalog, wrongRun: run }, failed('identity', 'upstream_auth', T1)]),
    config,
    NOW,
  )
  expect(found.map(({ code, subject, text }) => [code, subject, text])).toEqual([
    ['no_credential', 'catalog', expect.stringContaining('set catalog.sendCredential')],
    ['unauthorized', 'identity', 'the service refuses the credential'],
  ])
})

test('a full disk and damage explain what fails for them', () => {
  const sources = [failed('feeds', 'storage', T1), failed('osv', 'storage', T1)]
  const views = [{ kind: 'osv', failing: true, unread: null }] as unknown as Status['views']
  const boxes = {
    outbox: { problem: 'storage', reason: 'full' },
    inbox: null,
  } as unknown as Status['boxes']
  const parts = { ...(views && { views }), ...(boxes && { boxes }) }
  for (const state of ['full', 'damaged'] as const) {
    const storage = { state, reason: 'why', freeBytes: 0, since: T1 }
    expect(problemsOf(status(sources, { storage, ...parts }), config, NOW)).toMatchObject([
      { code: 'storage', subject: 'Data folder', text: state, detail: 'why', since: T1 },
    ])
  }
})

test('sources that are too old without a failed run are one problem', () => {
  const found = problemsOf(status([source('feeds', OLD), source('osv', OLD)]), config, NOW)
  expect(found).toMatchObject([{ code: 'old', level: 'failed', subject: 'feeds, osv', text: 'older than its policy' }])
  expect(found[0]?.advice).toEqual(['patchmirror sync feeds', 'patchmirror sync osv'])
})

test('a complete sync that did not end the age leads to the clock, and not to another sync', () => {
  const run = { id: 7, kind: 'sync', state: 'complete', facts: {}, endedAt: T2, code: null, message: null } as const
  const ahead = { ...OLD, asOf: '2026-06-30T00:05:00.000Z', lastRun: { ...run, startedAt: T2 } }
  const [problem] = problemsOf(status([source('feeds', ahead), source('osv', OLD)]), config, NOW)
  expect(problem?.detail).toMatch(
    /^older than sync.maxAgeHours \(26\); the last sync was complete, .* clock here is ahead/,
  )
  expect(problem?.advice).toEqual(['patchmirror doctor'])
  for (const lastRun of [
    { ...run, startedAt: '2026-06-30T00:05:02.000Z' },
    { ...run, startedAt: T2, kind: 'import' as const },
    { ...run, startedAt: T2, state: 'partial' as const },
  ])
    expect(problemsOf(status([source('feeds', { ...ahead, lastRun })]), config, NOW)[0]?.advice).toEqual([
      'patchmirror sync feeds',
    ])
})

test('nothing is a problem of a mirror where all is well', () => {
  expect(problemsOf(status([source('feeds'), source('osv')]), config, NOW)).toEqual([])
})

test('newest snapshots that lie in the future are one problem, with their dates and what helps', () => {
  const ahead = { lastChangeAt: '2026-07-02T00:00:00.000Z' }
  const near = { lastChangeAt: '2026-07-01T06:06:00.000Z' } // clocks differ a little
  const sources = [source('feeds', ahead), source('osv', ahead), source('catalog', near)]
  const [problem, ...more] = problemsOf(status(sources), config, NOW)
  expect(more).toEqual([])
  expect(problem).toMatchObject({ code: 'future', level: 'warning', subject: 'feeds, osv' })
  expect(problem?.text).toBe('the newest snapshot lies in the future')
  expect(problem?.detail).toContain('osv on 2026-07-02T00:00:00.000Z')
  expect(problem?.advice).toEqual(['patchmirror doctor'])
})

const LAG = config.fleet.maxLagSeconds + 1
const FLEET = { paused: false, failing: null, publishedAt: T1, served: 3, seen: 4, lagSeconds: LAG }
const BOTH = [source('feeds'), source('osv')]
const fleet = FLEET as unknown as NonNullable<Status['fleet']>
const unreadable = [{ kind: 'osv', state: 'unreadable', failing: false, unread: null }] as unknown as NonNullable<
  Status['views']
>
const unserved = { ...fleet, served: 0, lagSeconds: null }

test.each<[string, Status]>([
  ['a full disk', status(BOTH, { storage: { state: 'full', reason: 'why', freeBytes: 0 } })],
  ['damage', status(BOTH, { storage: { state: 'damaged', reason: 'why', freeBytes: 0 } })],
  ['an old source', status([source('feeds', OLD), source('osv')])],
  ['an old source that fails', status([failed('feeds', 'upstream_shape', T1, OLD)])],
  ['an unknown age', status([source('feeds', { ageSeconds: null }), source('osv')])],
  ['a source without data', status([source('feeds', { asOf: null, snapshot: null })])],
  ['a generation that is served too late', status(BOTH, { fleet })],
  ['a fleet that served nothing yet', status(BOTH, { fleet: unserved })],
  ['views that cannot be read', status(BOTH, { views: unreadable })],
])('a mirror that is not ready because of %s has a problem of the level failed for it', (_, one) => {
  const active = one.sources.map(({ name }) => name)
  expect(judgeReadiness(one, config, active, NOW).ready).toBe(false)
  const causes = problemsOf(one, config, NOW).filter(({ unready }) => unready)
  expect(causes.map(({ level }) => level)).toContain('failed')
})

test('a mirror with problems that it can serve with is ready', () => {
  const active = ['feeds', 'osv'] as const
  const odd = [{ kind: 'osv', state: 'behind', failing: true, unread: 1 }] as unknown as typeof unreadable
  const one = status([failed('feeds', 'upstream_shape', T1, {}), source('osv')], { views: odd })
  expect(problemsOf(one, config, NOW).map(({ level, unready }) => [level, unready])).toEqual([
    ['failed', false],
    ['warning', false],
    ['warning', false],
  ])
  expect(judgeReadiness(one, config, active, NOW).ready).toBe(true)
})

test('a refused bundle is named with what looks into it, and what ends the warning; the report hides the folder', () => {
  const lastRefused = { file: "refused/it's.zip", at: '2026-05-01T10:00:00.000Z', why: 'it is not signed' }
  const inbox = { waiting: [], imported: 0, superseded: 0, refused: 1, lastRefused, problem: null }
  const report = status([], { boxes: { outbox: null, inbox } })
  const [found] = problemsOf(report, config, NOW)
  expect(found?.advice).toEqual([`patchmirror bundle inspect '${config.data.dir}/inbox/refused/it'\\''s.zip'`])
  expect(found?.detail).toBe("refused/it's.zip: it is not signed. To end this warning, remove the file from the inbox")
  const reports = createStatusReports({ config, now: () => NOW, reads: {} } as unknown as ReportOptions)
  const [shown] = reports.problems(report)
  expect(shown?.advice).toEqual(["patchmirror bundle inspect '[inbox]/refused/it'\\''s.zip'"])
})

test('what keeps an inbox from the tag that it follows is said by its kind, without the address', () => {
  const inbox = { waiting: [], imported: 0, superseded: 0, refused: 0, lastRefused: null }
  const of = (code: string): string[] =>
    problemsOf(status([], { boxes: { outbox: null, inbox: { ...inbox, problem: code } } }), config, NOW).map(
      ({ text }) => text,
    )
  expect(of('upstream_not_found')).toEqual(['its host answers 404: the tag is not there, or it is no registry'])
  expect(of('upstream_auth')).toEqual(['its registry refuses access'])
  expect(of('EACCES')).toEqual(['its folder cannot be read'])
})
