import type { StorageState } from '../../../src/base/reports/storage.ts'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { openStatus } from '../../../src/server/status/open-status.ts'
import { judgeReadiness } from '../../../src/server/status/readiness.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import { acquireLock } from '../../../src/store/database/lock.ts'
import { lastedMs } from '../../../src/store/runs/runs.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import type { FilledStore } from '../../support/filled-store.ts'
import { sourceStatus } from '../../support/source-status.ts'
import { FEEDS, FILLED_AT, closeAll, jsonOf, serve as serveStore } from '../served.ts'
import { load } from '../../config/loading.ts'
import type { Config } from '../../../src/config/schema.ts'

afterEach(closeAll)

const HOUR = 3_600_000

/** A mirror that has an upstream; it is never asked here. */
const UPSTREAM = { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1' }
const serve: typeof serveStore = (fill, options) =>
  serveStore(fill, { ...options, env: { ...UPSTREAM, ...options?.env } })

interface Report {
  version: string
  uptimeSeconds: number
  sources: Record<string, unknown>[]
}

test('the path /-/health is answered when nothing is mirrored', async () => {
  const { get } = await serve(() => undefined)
  const reply = await get('/-/health')
  expect([reply.status, jsonOf(reply)]).toEqual([200, { status: 'ok' }])
  expect(reply.headers['cache-control']).toBe('no-store')
})

test('the status of an empty mirror has sources that never ran', async () => {
  const { get } = await serve(() => undefined)
  const report = jsonOf(await get('/-/status')) as unknown as Report
  expect(report.sources).toEqual(
    ['feeds', 'osv'].map((name) => ({
      name,
      state: 'never',
      snapshot: null,
      served: null,
      comparedAt: null,
      waiting: [],
      rejected: null,
      failingSince: null,
      doubtful: null,
      records: 0,
      asOf: null,
      ageSeconds: null,
      lastSuccessAt: null,
      lastChangeAt: null,
      openQuarantines: 0,
      partialLists: [],
      scope: null,
      contentDigest: null,
      partialListCount: 0,
      unprovedLists: [],
      partial: false,
      missing: null,
      unsynced: null,
      scopeChanged: null,
      signatures: null,
      lastRun: null,
      wrongRun: null,
      progress: null,
      nextRunAt: null,
    })),
  )
})

test('a problem names the run that failed, also when a refresh came after it', async () => {
  const { get } = await serve((store) => {
    store.publishOsv({ one: '{}' })
    store.publishFeeds(FEEDS)
    store.addRun('feeds', FILLED_AT + 1000, { state: 'failed', code: 'upstream_unreachable', message: 'no connection' })
    store.addRun('feeds', FILLED_AT + 5000, { message: 'one feed was refreshed' }, 'refresh')
  })
  const report = jsonOf(await get('/-/status')) as unknown as Report & { problems: unknown[] }
  const [feeds] = report.sources as unknown as [{ lastRun: { id: number }; wrongRun: { id: number } }]
  expect(feeds).toMatchObject({
    state: 'failed',
    lastRun: { kind: 'refresh' },
    wrongRun: { code: 'upstream_unreachable' },
  })
  expect(feeds.wrongRun.id).toBe(feeds.lastRun.id - 1)
  expect(JSON.stringify(report.problems)).toContain('no connection')
  expect(JSON.stringify(report.problems)).not.toContain('one feed was refreshed')
})

test('the status gives state, age and last run of each source, and nothing else', async () => {
  const { get } = await serve(
    (store) => {
      store.publishOsv({ one: '{}', two: '{}' })
      store.publishFeeds(FEEDS)
      store.addRun('feeds', FILLED_AT + 1000, {
        state: 'failed',
        code: 'upstream_unreachable',
        message: 'no connection',
        facts: { tries: 5 },
      })
    },
    { now: () => FILLED_AT + HOUR, nextRunAt: () => FILLED_AT + 2 * HOUR },
  )
  const report = jsonOf(await get('/-/status')) as unknown as Report
  expect([report.version, report.uptimeSeconds]).toEqual(['9.9.9', 3600])
  const [feeds, osv] = report.sources
  expect(feeds).toMatchObject({
    state: 'failed',
    asOf: '2026-07-01T00:00:00.000Z',
    lastRun: {
      kind: 'sync',
      state: 'failed',
      startedAt: '2026-07-01T00:00:01.000Z',
      endedAt: '2026-07-01T00:00:02.000Z',
      code: 'upstream_unreachable',
      message: 'no connection',
      facts: { tries: 5 },
    },
  })
  expect(osv).toMatchObject({
    name: 'osv',
    state: 'complete',
    records: 2,
    ageSeconds: 3600,
    nextRunAt: '2026-07-01T02:00:00.000Z',
  })
  expect(Object.keys(report)).toEqual([
    ...['version', 'instance', 'uptimeSeconds', 'sources', 'contentDigest', 'storage', 'relay'],
    ...['bundle', 'verified', 'problems'],
  ])
})

test('a source is reported as running until its newest run has ended', async () => {
  const served = await serve((store) => {
    store.publishOsv({ one: '{}' })
    store.addRun('osv', FILLED_AT + 1000)
  })
  const lock = acquireLock(served.dir, 'sync')
  onTestFinished(() => lock.release())
  const { sources } = jsonOf(await served.get('/-/status')) as unknown as Report
  expect(sources[1]).toMatchObject({ state: 'running', lastRun: { endedAt: null } })
})

test('a run that no process executes any more is reported as ended without a result', async () => {
  const served = await serve((store) => {
    store.publishOsv({ one: '{}' })
    store.addRun('osv', FILLED_AT + 1000)
  })
  const { sources } = jsonOf(await served.get('/-/status')) as unknown as Report
  const message = 'the process or its sync thread ended before the run did; nothing was committed'
  const lastRun = { state: 'failed', code: 'aborted', endedAt: null, message }
  expect(sources[1]).toMatchObject({ state: 'failed', records: 1, lastRun })
})

test('why a request is repeated is shown of public sources alone to those without a key', () => {
  const retry = { reason: '/v1/tags/acme-internal: upstream answered 503', nextAt: '2026-01-01T00:00:00.000Z' }
  const progress = { phase: 'lists', unit: 'items', done: 3, total: null, retry } as const
  for (const [name, isPrivate] of [
    ['osv', false],
    ['feeds', false],
    ['catalog', true],
    ['identity', true],
  ] as const) {
    const source = sourceStatus(name, { state: 'running', asOf: null, progress })
    const status = { sources: [source], relay: [], storage: { state: 'ok' } } as unknown as Status
    const limits = { maxAgeHours: 1 }
    const settings = settingsWith(limits)
    const [shown] = openStatus(status).sources
    expect(shown?.progress).toMatchObject({ phase: 'lists', done: 3, retry: { nextAt: retry.nextAt } })
    const texts = JSON.stringify([shown, judgeReadiness(status, settings, [name])])
    expect(texts.includes('acme-internal'), name).toBe(!isPrivate)
  }
})

test('a source whose first sync failed is not ready, with the code of the failure', () => {
  const at = '2026-07-01T05:58:00.000Z'
  const failed = { id: 7, kind: 'sync', state: 'failed', facts: {}, startedAt: at, endedAt: at } as const
  const lastRun = { ...failed, code: 'upstream_unreachable', message: 'http://internal' }
  const source = sourceStatus('catalog', { state: 'failed', asOf: null, ageSeconds: null, lastRun })
  const status = { sources: [source], storage: { state: 'ok' } } as unknown as Status
  const limits = { maxAgeHours: 1 }
  const settings = settingsWith(limits)
  expect(judgeReadiness(status, settings, ['catalog']).sources).toEqual([
    { name: 'catalog', ready: false, reason: 'nothing mirrored yet: the last run failed (upstream_unreachable)' },
  ])
})

test('how long a run took is not known where the next one ended its row', () => {
  const run = { startedAt: 1000, endedAt: 61_000 }
  expect(lastedMs({ ...run, state: 'stopped', code: 'aborted' })).toBe(60_000)
  expect(lastedMs({ ...run, state: 'failed', code: 'upstream_status' })).toBe(60_000)
  expect(lastedMs({ ...run, state: 'failed', code: 'aborted' })).toBeNull()
  expect(lastedMs({ ...run, state: 'running', code: null, endedAt: null })).toBeNull()
})

test('a source that repeats a failed request before its first snapshot is not ready, with the reason', () => {
  const retry = { reason: 'no connection', nextAt: '2026-01-01T00:00:00.000Z' }
  const progress = { phase: 'index', unit: 'records', done: 0, total: null, retry } as const
  const sources = [sourceStatus('osv', { state: 'running', asOf: null, ageSeconds: null, progress })]
  const limits = { maxAgeHours: 1 }
  const settings = settingsWith(limits)
  const storage = { state: 'ok', reason: null, freeBytes: null } as const
  const [judged] = judgeReadiness({ sources, storage }, settings, ['osv']).sources
  expect(judged).toEqual({
    name: 'osv',
    ready: false,
    reason: 'nothing mirrored yet: the first run is in progress; a request failed and is repeated: no connection',
  })
})

test.each([
  ['stopped', 'complete', 200],
  ['partial', 'partial', 200],
  ['failed', 'failed', 200],
  ['never', null, 503],
] as const)(
  'a source whose last run was stopped on request is %s where the one before was %s, and ready as before: %i',
  async (state, before, ready) => {
    const served = await serve((store) => {
      store.publishFeeds(FEEDS)
      if (before !== null) store.publishOsv({ one: '{}' })
      if (before !== null) store.addRun('osv', FILLED_AT + 500, { state: before })
      store.addRun('osv', FILLED_AT + 1000, { state: 'stopped', code: 'aborted' })
    })
    const { sources } = jsonOf(await served.get('/-/status')) as unknown as Report
    expect(sources[1]).toMatchObject({ state, lastRun: { state: 'stopped' } })
    expect((await served.get('/-/ready')).status).toBe(ready)
  },
)

test.each(['partial', 'quarantined', 'failed'] as const)(
  'a source whose last run ended %s says so, and stays ready while its data are fresh',
  async (state) => {
    const served = await serve((store) => {
      store.publishOsv({ one: '{}' })
      store.publishFeeds(FEEDS)
      store.addRun('osv', FILLED_AT + 1000, { state })
    })
    const { sources } = jsonOf(await served.get('/-/status')) as unknown as Report
    expect(sources[1]).toMatchObject({ state })
    expect((await served.get('/-/ready')).status).toBe(200)
  },
)

test.each([
  ['that this mirror synced and', 'sync', 'failed', true],
  ['that imports alone brought and that', 'import', 'complete', false],
] as const)(
  'a stored catalog %s no credential syncs is reported and shown as such: kind %s, %s, %s',
  async (_, kind, state, isReported) => {
    const served = await serve(
      (store) => {
        store.publishFeeds(FEEDS)
        store.addRun('feeds', FILLED_AT + 1000, { state, message: 'the reason' })
        store.damage(`UPDATE snapshot SET source = 'catalog' WHERE source = 'feeds';
                      UPDATE run SET source = 'catalog', kind = '${kind}' WHERE source = 'feeds'`)
      },
      { people: (config) => createWeb({ config, version: '9.9.9' }), now: () => FILLED_AT + HOUR },
    )
    const { sources } = jsonOf(await served.get('/-/status')) as unknown as Report
    const why = expect.stringContaining('upstream.apiKey (PATCHMIRROR_UPSTREAM_API_KEY_FILE)') as string
    expect(sources.find(({ name }) => name === 'catalog')).toMatchObject({
      unsynced: isReported ? why : null,
    })
    const html = (await served.get('/', { accept: 'text/html' })).body.toString()
    expect(html.includes('catalog: not synced any more')).toBe(isReported)
    const [missing, failed] = ['not synced any more', 'the last run failed'].map((text) => html.indexOf(text))
    if (isReported) expect(missing).toBeLessThan(failed ?? -1)
  },
)

test('a full data folder is reported, and the mirror is not ready meanwhile', async () => {
  const full = { state: 'full', reason: 'no room', freeBytes: 0 } as const
  const clock = { now: FILLED_AT + 60_000 }
  let storage: StorageState = full
  const { get } = await serve(
    (store) => {
      store.publishOsv({ one: '{}' })
      store.publishFeeds(FEEDS)
    },
    { now: () => clock.now, storage: () => storage },
  )
  expect(jsonOf(await get('/-/status'))).toMatchObject({ storage: full })
  const reply = await get('/-/ready')
  expect(reply.status).toBe(503)
  expect(jsonOf(reply)).toMatchObject({ ready: false, storage: { ready: false, ...full } })
  expect((await get('/external/osv/one.json')).status).toBe(200)
  storage = { state: 'ok', reason: null, freeBytes: 9_000_000 }
  clock.now += 1000 // a report holds for a second
  expect((await get('/-/ready')).status).toBe(200)
})

test('a mirror is ready when every source has a snapshot', async () => {
  const { get } = await serve((store) => store.publishOsv({ one: '{}' }))
  const reply = await get('/-/ready')
  expect(reply.status).toBe(503)
  expect(jsonOf(reply)).toMatchObject({
    ready: false,
    sources: [
      { name: 'feeds', ready: false, reason: 'nothing mirrored yet' },
      { name: 'osv', ready: true },
    ],
  })
  expect(reply.headers['retry-after']).toBeDefined()
})

test('readiness counts the age from upstream’s date, and a confirmation renews it', async () => {
  const clock = { now: FILLED_AT + 26 * HOUR }
  const served = await serve(
    (store) => {
      store.publishOsv({ one: '{}' })
      store.publishFeeds(FEEDS)
    },
    { now: () => clock.now },
  )
  expect((await served.get('/-/ready')).status).toBe(200)
  clock.now += 2000
  const stale = await served.get('/-/ready')
  expect(stale.status).toBe(503)
  expect(stale.body.toString()).toContain('older than sync.maxAgeHours (26)')
  for (const source of ['osv', 'feeds'] as const)
    served.store.addRun(source, clock.now - 1000, { asOf: clock.now - 1000 })
  expect((await served.get('/-/ready')).status).toBe(503) // a report holds for a second
  clock.now += 1000
  expect((await served.get('/-/ready')).status).toBe(200)
})

test('a date that is later than the clock is no age: the mirror is not ready, and says that the clock may be behind', async () => {
  const clock = { now: FILLED_AT - 5 * 60_000 }
  const served = await serve(
    (store) => {
      store.publishOsv({ one: '{}' })
      store.publishFeeds(FEEDS)
    },
    { now: () => clock.now, env: { PATCHMIRROR_SERVER_STALE_ACTION: 'osv=warn' } },
  )
  const ageOf = async () => {
    const { sources } = jsonOf(await served.get('/-/status')) as unknown as Report
    return sources.find(({ name }) => name === 'osv')?.['ageSeconds']
  }
  expect([await ageOf(), (await served.get('/-/ready')).status]).toEqual([0, 200]) // clocks differ a little
  clock.now = FILLED_AT - 400 * 24 * HOUR
  const ready = await served.get('/-/ready')
  expect([await ageOf(), ready.status]).toEqual([null, 503])
  const why = "later than this machine's clock, so the age is not known"
  expect(jsonOf(ready)).toMatchObject({
    sources: ['feeds', 'osv'].map((name) => ({
      name,
      ready: false,
      reason: expect.stringContaining(why) as string,
    })),
  })
  served.server.snapshotChanged()
  const record = await served.get('/external/osv/one.json')
  expect([record.status, record.headers['x-mirror-stale']]).toEqual([200, expect.stringContaining(why)])
})

test('a status for which a table is missing is an error in JSON, which says that the database is damaged', async () => {
  const served = await serve((store) => store.publishOsv({ one: '{}' }))
  served.store.damage('DROP TABLE run')
  const reply = await served.get('/-/status')
  expect([reply.status, jsonOf(reply)['error']]).toEqual([503, 'corrupt'])
  expect(served.errors.length).toBeGreaterThan(0)
  expect((await served.get('/-/health')).status).toBe(200)
  expect((await served.get('/external/osv/one.json')).status).toBe(200)
})

test('what is ready is served at once, also when another process stored it', async () => {
  const served = await serveStore(() => undefined)
  expect((await served.get('/external/osv/all.json')).status).toBe(503)
  served.store.publishFeeds(FEEDS)
  served.store.publishOsv({ one: '{}' })
  expect((await served.get('/-/ready')).status).toBe(200)
  expect((await served.get('/external/osv/all.json')).status).toBe(200)
})

test('without an upstream the stored sources must be ready, and without data the public feeds', async () => {
  const empty = await serveStore(() => undefined)
  const nothing = await empty.get('/-/ready')
  expect(nothing.status).toBe(503)
  expect(jsonOf(nothing)).toMatchObject({ sources: [{ name: 'feeds' }, { name: 'osv' }] })
  const held = await serveStore((store) => store.publishOsv({ one: '{}' }))
  const ready = await held.get('/-/ready')
  expect(ready.status).toBe(200)
  expect(jsonOf(ready)).toMatchObject({ sources: [{ name: 'osv', ready: true }] })
  expect(jsonOf(await held.get('/-/status'))).toMatchObject({ bundle: null })
})

test('a decision of another process is logged once, and takes the place of the request in the last run', async () => {
  const clock = { now: FILLED_AT + 5000 }
  const fill = (store: FilledStore): void => {
    const id = store.addRun('osv', FILLED_AT + 1000, {
      state: 'quarantined',
      message: 'it would remove all 9 records; approve or reject run 1',
    })
    store.damage(
      `INSERT INTO quarantine (run_id, source, path, reason, sha256, body, as_of) VALUES
       (${id}, 'osv', '/external/osv/all.json', 'it would remove all 9 records', x'01', x'00', 0)`,
    )
  }
  const { get, store, server, told, fields, own } = await serve(fill, { now: () => clock.now })
  const lastMessage = async (): Promise<unknown> => {
    clock.now += 2000 // the report is made once a second
    const { sources } = jsonOf(await get('/-/status', own)) as unknown as Report
    const osv = sources.find(({ name }) => name === 'osv') as { lastRun: { message: string } }
    return osv.lastRun.message
  }
  expect(await lastMessage()).toBe('it would remove all 9 records; approve or reject run 1')
  const { problems } = jsonOf(await get('/-/status', own))
  const since = new Date(FILLED_AT + 1000).toISOString()
  expect(problems).toContainEqual(expect.objectContaining({ code: 'quarantined', run: 1, since }))
  const decide = (decision: string, by: string): void => {
    store.damage(
      `UPDATE quarantine SET decision = '${decision}', decided_at = 1;
       UPDATE run SET facts = json_set(facts, '$.decision', '${decision}', '$.decidedBy', '${by}')`,
    )
    for (let look = 0; look < 2; look++) server.snapshotChanged()
  }
  decide('rejected', 'alice')
  store.damage('UPDATE quarantine SET decided_at = 2') // nothing that somebody decided
  decide('approved', 'bob')
  expect(told.filter((line) => line.includes('run 1 was'))).toEqual([
    'osv: run 1 was rejected by alice: it would remove all 9 records',
    'osv: run 1 was approved by bob: it would remove all 9 records',
  ])
  expect(fields).toContainEqual({ source: 'osv', run: 1, decision: 'rejected', by: 'alice' })
  expect(await lastMessage()).toBe('it would remove all 9 records; approved since (run 1)')
  store.damage("UPDATE quarantine SET decision = 'superseded', decided_at = 1")
  server.snapshotChanged()
  expect(await lastMessage()).toBe('it would remove all 9 records; a later run replaced what run 1 refused')
})

/** The settings by default, with one limit of the age of all sources. */
function settingsWith(limits: { maxAgeHours: number }): Config {
  const { config } = load()
  const { osv, feeds, catalog, identity } = config
  return {
    ...config,
    osv: { ...osv, ...limits },
    feeds: { ...feeds, ...limits },
    catalog: { ...catalog, ...limits },
    identity: { ...identity, ...limits },
  }
}
