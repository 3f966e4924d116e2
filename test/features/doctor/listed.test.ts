import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FleetStatus } from '../../../src/base/reports/fleet.ts'
import type { ProblemCode } from '../../../src/base/reports/problems.ts'
import type { SourceStatus } from '../../../src/base/reports/sources.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import { describeProblems } from '../../../src/cli/mirror/status/lines.ts'
import { loadQuick } from '../../support/limits.ts'
import type { Config } from '../../../src/config/schema.ts'
import { type CheckResult, runChecks } from '../../../src/features/doctor/check.ts'
import { doctorWorld } from '../../../src/features/doctor/cli/world.ts'
import { mirrorChecks } from '../../../src/features/doctor/doctor.ts'
import { openProbe } from '../../../src/features/doctor/network/service.ts'
import { problemNotices } from '../../../src/features/pages/pages/problems.ts'
import { problemsOf } from '../../../src/server/status/problems.ts'
import { judgeReadiness } from '../../../src/server/status/readiness.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { sourceStatus } from '../../support/source-status.ts'

const NOW = Date.parse('2026-07-01T12:00:00.000Z')
const SINCE = '2026-07-01T11:59:00.000Z'

const STATUS: Status = {
  version: 'test',
  instance: 'a',
  uptimeSeconds: 1,
  sources: [sourceStatus('feeds')],
  contentDigest: null,
  storage: { state: 'ok', reason: null, freeBytes: null },
  relay: [],
  bundle: null,
}

const FLEET: FleetStatus = {
  url: 'file:///fleet',
  name: 'a',
  site: null,
  role: 'reader',
  leads: false,
  leader: null,
  epoch: 1,
  seen: 7,
  prepared: 7,
  served: 7,
  lagSeconds: 0,
  publishedAt: SINCE,
  activatesAt: SINCE,
  failing: null,
  holdingBackSince: null,
  paused: false,
  fenced: 0,
  requests: {},
  bytes: { up: 0, down: 0 },
}

const VIEWS = {
  kind: 'osv',
  state: 'behind',
  snapshot: 'aa',
  madeAt: SINCE,
  making: false,
  failing: false,
  odd: 0,
  unread: null,
} as const
const INBOX = { waiting: [], imported: 0, superseded: 0, refused: 1, problem: null, lastRefused: null }
const OUTBOX = { last: null, exporting: false, problem: 'bundle', reason: 'no key of bundle.signingKeys can be read' }
const COUNTS = { pending: 0, processing: 0, done: 0, dead: 0, dismissed: 0, unconfirmed: 0, ignored: 0 }
const TARGET = {
  id: 7,
  name: null,
  target: 'https://chat.test',
  givenUp: 0,
  failedAt: SINCE,
  deliveredAt: null,
  since: SINCE,
}

const failing = { since: SINCE, refused: null, message: 'connect ECONNREFUSED' }
const of = (more: Partial<SourceStatus>): Partial<Status> => ({ sources: [sourceStatus('feeds', more)] })
const failed = (code: string, facts: Record<string, number> = {}): Partial<Status> => {
  const run = { id: 7, kind: 'sync', state: 'failed', facts, startedAt: SINCE, endedAt: SINCE } as const
  return of({ state: 'failed', failingSince: SINCE, lastRun: { ...run, code, message: 'why' } })
}
const webhooks = (more: object): Partial<Status> => ({
  webhooks: { state: 'on', counts: COUNTS, refresh: { misses: null }, ...more } as unknown as NonNullable<
    Status['webhooks']
  >,
})

/** A status for everything that the list of problems can have; some have more than one. */
const CASES: Readonly<Record<ProblemCode, readonly Partial<Status>[]>> = {
  storage: [
    { storage: { state: 'full', reason: 'no space', freeBytes: 0 } },
    { storage: { state: 'damaged', reason: 'x', freeBytes: 1 } },
  ],
  damaged: [{ verified: { endedAt: SINCE, damaged: ['record A'], damagedCount: 1, healed: '' } }],
  unreachable: [failed('upstream_unreachable')],
  unauthorized: [failed('upstream_auth')],
  no_credential: [failed('upstream_auth', { needsCredential: 1 })],
  run_failed: [failed('upstream_shape')],
  age_unknown: [of({ ageSeconds: null })],
  old: [of({ ageSeconds: 1e6 })],
  secret_file: [{ secretFaults: [{ key: 'upstream.apiKey', fault: 'is empty' }] }],
  empty: [of({ asOf: null, snapshot: null, state: 'never' })],
  first_run: [of({ asOf: null, snapshot: null, state: 'running' })],
  quarantined: [of({ waiting: [{ run: 7, since: SINCE, reason: 'too much' }] }), of({ state: 'quarantined' })],
  partial: [of({ state: 'partial' })],
  doubtful: [
    of({
      doubtful: { run: 7, at: SINCE, words: ['57 records'], message: null } as unknown as SourceStatus['doubtful'],
    }),
  ],
  rejected: [of({ rejected: { run: 7, effect: 'nothing newer is published' } })],
  unsynced: [of({ unsynced: 'upstream.apiKey is not set' })],
  scope_changed: [of({ scopeChanged: 'run 3 used another osv.scope' })],
  signatures: [
    of({
      signatures: { failed: 1, none: 0, enforced: false, unverified: [] } as unknown as SourceStatus['signatures'],
    }),
  ],
  future: [of({ lastChangeAt: '2026-07-02T00:00:00.000Z' })],
  fleet: [
    { fleet: { ...FLEET, failing } },
    { fleet: { ...FLEET, paused: true } },
    { fleet: { ...FLEET, served: 5, lagSeconds: 9999 } },
    { fleet: { ...FLEET, served: 0, seen: 0 } },
  ],
  relay: [
    { relay: [{ ...TARGET, state: 'disabled', reason: 'answered 410', pending: 0 }] },
    { relay: [{ ...TARGET, state: 'failing', reason: null, pending: 3 }] },
  ],
  edge: [{ edge: [{ id: 1, state: 'failing', reason: '503' }] as unknown as NonNullable<Status['edge']> }],
  webhooks: [
    webhooks({ counts: null }),
    webhooks({ counts: null, failing: { message: 'webhooks.db is damaged', since: SINCE } }),
    webhooks({ counts: { ...COUNTS, dead: 2 } }),
    webhooks({ counts: { ...COUNTS, pending: 100_000 } }),
    webhooks({ lastReceivedAt: null, lastRefusedAt: SINCE, lastRefusedReason: 'signature' }),
    webhooks({ state: 'off', lastReceivedAt: SINCE, lastRefusedAt: SINCE, lastRefusedReason: 'no_secret' }),
    webhooks({ refresh: { misses: { warning: '5 changes came without an event' } } }),
  ],
  outbox: [{ boxes: { outbox: OUTBOX, inbox: null } }],
  inbox: [
    { boxes: { outbox: null, inbox: { ...INBOX, lastRefused: { file: 'x.zip', at: SINCE, why: 'unsigned' } } } },
    { boxes: { outbox: null, inbox: { ...INBOX, problem: 'EACCES' } } },
    { boxes: { outbox: null, inbox: { ...INBOX, problem: 'upstream_auth' } } },
  ],
  registry: [
    {
      registry: {
        images: 3,
        there: 1,
        missing: 0,
        unknown: 2,
        checking: false,
        checkedAt: null,
        incomplete: null,
        problem: 'upstream_auth',
      },
    },
  ],
  views: [
    { views: [{ ...VIEWS, failing: true }] },
    { views: [{ ...VIEWS, state: 'unreadable' }] },
    { views: [{ ...VIEWS, kind: 'vex', unread: 2 }] },
  ],
  findings: [{ findings: { failing: true } as unknown as NonNullable<Status['findings']> }],
}

/** Settings of a mirror of a fleet, on a folder in which nothing is stored. */
function settings(): Config {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-listed-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  openWriter(dir).close()
  const env = {
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.example.com',
    PATCHMIRROR_VIEWS_SERVE: 'bucket,derived,query,vex,findings',
  }
  const { config } = loadQuick({ env, cwd: dir })
  return { ...config, fleet: { ...config.fleet, url: 'file:///nowhere' } }
}

const LISTED = 'endpoint relay dead-letters edge sources dates damage boxes keys views fleet'.split(' ')

/** What the checks of the doctor find that say what the list has, where a daemon reports this. */
function examine(config: Config, status: Status): Promise<CheckResult[]> {
  const world = { ...doctorWorld({}), now: () => NOW, readStatus: () => Promise.resolve(status), env: {} }
  const checks = mirrorChecks({ world, config, probe: openProbe(world, config) })
  const free = checks.filter(({ name }) => LISTED.includes(name)).map((check) => ({ ...check, needs: [] }))
  return runChecks(free, 10_000)
}

const every = Object.entries(CASES).flatMap(([code, all]) => all.map((parts, at) => [code, at, parts] as const))

test.each(every)(
  'doctor, status, page and readiness agree on the severity and the words of %s (%i)',
  async (code, _, parts) => {
    const config = settings()
    const status = { ...STATUS, ...parts }
    const problems = problemsOf(status, config, NOW)
    expect(problems.map((one) => one.code)).toEqual([code])
    const [problem] = problems
    const head = `${problem?.subject}: ${problem?.text}`
    const isFailed = problem?.level === 'failed'

    const troubled = (await examine(config, status)).filter(({ state }) => state === 'warn' || state === 'fail')
    expect(troubled).toEqual([expect.objectContaining({ state: isFailed ? 'fail' : 'warn' })])
    for (const words of [head, problem?.detail ?? '', problem?.effect ?? '', problem?.since ?? ''])
      expect(troubled[0]?.found).toContain(words)

    expect(describeProblems(status, config, NOW)[0]).toContain(`${isFailed ? 'PROBLEM' : 'WARNING'}: ${head}`)
    const notices = problemNotices({ config, ui: () => '/', now: NOW, signedIn: true }, status)
    expect(notices).toMatchObject([{ title: head, tone: isFailed ? 'bad' : 'warn' }])
    const active = status.sources.map(({ name }) => name)
    expect(judgeReadiness(status, config, active, NOW).ready).toBe(problem?.unready !== true)
  },
)

test('the doctor advises no newer data where the clock is ahead, and no wait of a year where it was', async () => {
  const lastRun = { id: 1, kind: 'sync', state: 'complete', startedAt: '2027-07-01T00:00:00.000Z' }
  const ahead = of({ ageSeconds: 3e7, lastRun: lastRun as unknown as SourceStatus['lastRun'] })
  const old = (await examine(settings(), { ...STATUS, ...ahead })).find(({ name }) => name === 'sources')
  expect(old).toMatchObject({ state: 'fail', found: expect.stringContaining('Check it (NTP)') as string })
  expect(old?.action).toBe('Correct what is named.')
  const [was = {}] = CASES.future
  const future = (await examine(settings(), { ...STATUS, ...was })).find(({ name }) => name === 'dates')
  expect(future?.action).toContain('the next snapshot with a change ends this')
})

test('an inbox that did not answer in time is not said to have failed', () => {
  const [late] = problemsOf({ ...STATUS, ...webhooks({ counts: null }) }, settings(), NOW)
  expect(late).toMatchObject({ level: 'warning', text: 'it is not known what waits in the inbox', effect: null })
})

test('the doctor finds nothing where the list of problems is empty', async () => {
  const config = settings()
  const status = { ...STATUS, fleet: FLEET }
  expect(problemsOf(status, config, NOW)).toEqual([])
  const found = await examine(config, status)
  expect(found.filter(({ state }) => state === 'warn' || state === 'fail')).toEqual([])
  expect(found.find(({ name }) => name === 'fleet')?.found).toBe('generation 7 of 7 is served by a (reader)')
})
