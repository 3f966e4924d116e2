import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FleetStatus } from '../../../src/base/reports/fleet.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { carriedChecks } from '../../../src/features/doctor/carried.ts'
import type { Finding } from '../../../src/features/doctor/check.ts'
import { doctorWorld } from '../../../src/features/doctor/cli/world.ts'
import { fleetChecks } from '../../../src/features/doctor/fleet.ts'
import { problemsOf } from '../../../src/server/status/problems.ts'

const NOW = Date.parse('2026-07-01T12:00:00.000Z')
const SINCE = '2026-07-01T11:59:00.000Z'

const STATUS: Status = {
  version: 'test',
  instance: 'a',
  uptimeSeconds: 1,
  sources: [],
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

/** Returns what a check finds where a daemon reports this, and the levels of the list's problems of the same codes. */
async function judge(name: string, parts: Partial<Status>): Promise<Finding & { listed: string[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-listed-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_VIEWS_BUCKET: 'true' }
  const { config: plain } = loadConfig({ env, cwd: dir })
  const config = { ...plain, fleet: { ...plain.fleet, url: 'file:///fleet' } }
  const status = { ...STATUS, ...parts }
  const world = {
    ...doctorWorld({}),
    now: () => NOW,
    readStatus: () => Promise.resolve(status),
    env: {},
    loaded: null,
    problem: null,
    timeoutMs: 1000,
    fileSystemType: () => 0xef53,
    probeStorage: () => STATUS.storage,
  }
  const check = [...carriedChecks(world, config), ...fleetChecks(world, config)].find((one) => one.name === name)
  if (check === undefined) throw new Error(`no check ${name}`)
  const codes: readonly string[] = name === 'boxes' ? ['outbox', 'inbox'] : [name]
  const problems = problemsOf(status, config, NOW).filter(({ code }) => codes.includes(code))
  return { ...(await check.run()), listed: problems.map(({ level }) => level) }
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
const INBOX = { waiting: [], imported: 0, superseded: 0, refused: 1, problem: null }
const OUTBOX = { last: null, exporting: false, problem: 'bundle', reason: 'no key of bundle.signingKeys can be read' }
const failing = { since: SINCE, refused: null, message: 'connect ECONNREFUSED' }

test.each<[what: string, check: string, parts: Partial<Status>, state: Finding['state'], found: string]>([
  ['a store that fails', 'fleet', { fleet: { ...FLEET, failing } }, 'warn', `since ${SINCE}: connect ECONNREFUSED`],
  ['a rollback', 'fleet', { fleet: { ...FLEET, paused: true } }, 'warn', 'a rollback was published'],
  [
    'a late generation',
    'fleet',
    { fleet: { ...FLEET, served: 5, lagSeconds: 9999 } },
    'fail',
    'generation 5 is served',
  ],
  ['no generation', 'fleet', { fleet: { ...FLEET, served: 0, seen: 0 } }, 'fail', 'no generation is served yet'],
  ['a sound member', 'fleet', { fleet: FLEET }, 'ok', 'generation 7 of 7 is served by a (reader)'],
  ['views that fail', 'views', { views: [{ ...VIEWS, failing: true }] }, 'warn', 'Views (osv): they cannot be built'],
  ['missing documents', 'views', { views: [{ ...VIEWS, kind: 'vex', unread: 2 }] }, 'warn', '2 documents are damaged'],
  [
    'an export',
    'boxes',
    { boxes: { outbox: OUTBOX, inbox: null } },
    'fail',
    'the last export into the outbox failed: no',
  ],
  [
    'a refused bundle',
    'boxes',
    { boxes: { outbox: null, inbox: { ...INBOX, lastRefused: { file: 'x.zip', at: SINCE, why: 'unsigned' } } } },
    'warn',
    'the inbox refused x.zip: unsigned',
  ],
  [
    'an inbox',
    'boxes',
    { boxes: { outbox: null, inbox: { ...INBOX, problem: 'EACCES', lastRefused: null } } },
    'fail',
    'the folder cannot be read (EACCES)',
  ],
])('the doctor is as severe about %s as the list of problems', async (_, check, parts, state, found) => {
  const finding = await judge(check, parts)
  expect(finding.state).toBe(state)
  expect(finding.found).toContain(found)
  const worst = finding.listed.includes('failed') ? 'fail' : 'warn'
  expect(finding.listed.length === 0 ? 'ok' : worst).toBe(state)
})
