import { expect } from 'vitest'
import { createMetrics } from '../../src/daemon/metrics/metrics.ts'
import type { SourceStatus } from '../../src/base/reports/sources.ts'
import { NO_FIGURES, sourceStatus } from '../support/source-status.ts'
import { longTest, test } from '../support/tables.ts'

const LAST_RUN = {
  id: 7,
  kind: 'sync',
  state: 'complete',
  code: null,
  message: null,
  facts: {},
  startedAt: '2026-07-01T00:00:01.500Z',
  endedAt: '2026-07-01T00:00:03.000Z',
} as const
const OSV = sourceStatus('osv', {
  ageSeconds: 61,
  asOf: '2026-07-01T00:00:00.000Z',
  lastSuccessAt: '2026-07-01T00:00:02.000Z',
  lastChangeAt: '2026-06-30T00:00:00.000Z',
  lastRun: LAST_RUN,
  openQuarantines: 1,
  records: 5,
  partialListCount: 2,
  unsynced: 'not synced',
})

const REFRESH = {
  refreshes: 7,
  failedRefreshes: 2,
  failuresInRow: 0,
  refreshingSince: null,
  latency: { events: 4, stored: null, refreshed: { median: 1500, p99: 2500 }, visible: null },
  misses: {
    arrivals: 6,
    unannounced: 3,
    missRate: 0.5,
    unconfirmed: 1,
    warning: 'it seems dead',
  },
}

const WEBHOOKS = {
  state: 'on',
  endpoints: [],
  secrets: 1,
  counts: { pending: 2, dead: 1, done: 0, ignored: 0 },
  oldestPendingAt: null,
  lastReceivedAt: null,
  lastRefusedAt: null,
  refresh: REFRESH,
} as const
const TARGET = {
  id: 3,
  name: null,
  target: null,
  state: 'failing',
  reason: null,
  pending: 4,
  givenUp: 2,
  since: null,
  failedAt: null,
  deliveredAt: null,
} as const

test('the metrics page shows each source’s current state, and the counters', async () => {
  const metrics = createMetrics()
  metrics.countWebhook('new', '')
  metrics.countWebhook('new', '')
  metrics.countWebhook('unauthorized', 'too_old')
  const page = await metrics.render({
    ...NO_FIGURES,
    sources: [OSV],
    webhooks: WEBHOOKS,
    relay: [TARGET, { ...TARGET, id: 4, name: 'ci' }],
    storage: { state: 'full', reason: null, freeBytes: 17 },
  })
  for (const line of [
    'patchmirror_webhook_requests_total{outcome="new",reason=""} 2',
    'patchmirror_webhook_requests_total{outcome="unauthorized",reason="too_old"} 1',
    'patchmirror_webhook_inbox_rows{state="pending"} 2',
    'patchmirror_webhook_refreshes_total{outcome="ok"} 5',
    'patchmirror_webhook_refreshes_total{outcome="failed"} 2',
    'patchmirror_webhook_latency_seconds{stage="refreshed",percentile="99"} 2.5',
    'patchmirror_webhook_unannounced_changes{window="7d"} 3',
    'patchmirror_webhook_unconfirmed_announcements{window="7d"} 1',
    'patchmirror_webhook_subscription_suspect{window="7d"} 1',
    'patchmirror_relay_target_state{target="3",state="failing"} 1',
    'patchmirror_relay_target_state{target="3",state="ok"} 0',
    'patchmirror_storage_state{state="full"} 1',
    'patchmirror_storage_state{state="ok"} 0',
    'patchmirror_storage_free_bytes 17',
    'patchmirror_source_state{source="osv",state="failed"} 0',
    'patchmirror_source_synced{source="osv"} 0',
    'patchmirror_relay_waiting{target="3"} 4',
    'patchmirror_relay_waiting{target="ci"} 4',
    'patchmirror_relay_target_state{target="ci",state="failing"} 1',
    'patchmirror_relay_given_up_total{target="3"} 2',
    'patchmirror_source_state{source="osv",state="complete"} 1',
    'patchmirror_source_age_seconds{source="osv"} 61',
    'patchmirror_source_as_of_timestamp_seconds{source="osv"} 1782864000',
    'patchmirror_source_last_success_timestamp_seconds{source="osv"} 1782864002',
    'patchmirror_source_last_change_timestamp_seconds{source="osv"} 1782777600',
    'patchmirror_source_last_attempt_timestamp_seconds{source="osv"} 1782864001.5',
    'patchmirror_quarantine_open{source="osv"} 1',
    'patchmirror_source_records{source="osv"} 5',
    'patchmirror_source_last_run_seconds{source="osv"} 1.5',
  ])
    expect(page).toContain(`${line}\n`)
  expect(metrics.contentType).toMatch(/^text\/plain; version=0\.0\.4/)
})

test('the metrics page has no value that is outdated or unknown', async () => {
  const metrics = createMetrics()
  await metrics.render({ ...NO_FIGURES, sources: [OSV], webhooks: WEBHOOKS, relay: [TARGET] })
  const failed: SourceStatus = { ...OSV, state: 'failed', asOf: null, ageSeconds: null, lastRun: null }
  const page = await metrics.render({ ...NO_FIGURES, sources: [failed] })
  expect(page).toContain('patchmirror_source_state{source="osv",state="failed"} 1')
  expect(page).toContain('patchmirror_source_state{source="osv",state="complete"} 0')
  expect(page).not.toMatch(
    /age_seconds\{|as_of_timestamp_seconds\{|last_run_seconds\{|inbox_rows\{|refreshes_total\{|latency_seconds\{|window=|relay_\w+\{/,
  )
})

test('the counters of two mirrors in one process are separate', async () => {
  const one = createMetrics()
  const two = createMetrics()
  one.countWebhook('new', '')
  expect(await two.render(NO_FIGURES)).not.toContain('outcome="new"')
})

test('every metric name has the form that Prometheus defines for its type', async () => {
  const page = await createMetrics().render(NO_FIGURES)
  const types = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name, type])
  expect(types.length).toBeGreaterThan(20)
  for (const [name = '', type] of types) {
    expect(name, type).toMatch(/^(patchmirror|nodejs|process)_[a-z0-9_]+$/)
    expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter')
  }
})

test('the counters count the events since the start', async () => {
  const metrics = createMetrics('1.2.3')
  const run = { source: 'osv', kind: 'sync', state: 'complete' } as const
  metrics.countRun({ ...run, facts: { requests: 3, bytes: 700 } })
  metrics.countRun({ ...run, facts: { requests: 1, bytes: 50 } })
  metrics.countRun({ ...run, state: 'failed', facts: {} })
  metrics.countAnswer('public', 200, 0.0002)
  metrics.countAnswer('public', 200, 0.02)
  metrics.countAnswer('mirror', 404, 40)
  const page = await metrics.render(NO_FIGURES)
  for (const line of [
    'patchmirror_build_info{version="1.2.3"} 1',
    'patchmirror_runs_total{source="osv",kind="sync",state="complete"} 2',
    'patchmirror_runs_total{source="osv",kind="sync",state="failed"} 1',
    'patchmirror_upstream_requests_total{source="osv"} 4',
    'patchmirror_upstream_bytes_total{source="osv"} 750',
    'patchmirror_http_requests_total{surface="public",code="200"} 2',
    'patchmirror_http_requests_total{surface="mirror",code="404"} 1',
    'patchmirror_http_request_duration_seconds_bucket{le="0.0005"} 1',
    'patchmirror_http_request_duration_seconds_bucket{le="0.025"} 2',
    'patchmirror_http_request_duration_seconds_bucket{le="30"} 2',
    'patchmirror_http_request_duration_seconds_bucket{le="+Inf"} 3',
    'patchmirror_http_request_duration_seconds_count 3',
  ])
    expect(page).toContain(`${line}\n`)
  expect(page).toMatch(/^nodejs_eventloop_lag_seconds /m)
  expect(page).toMatch(/^nodejs_eventloop_lag_p99_seconds 0$/m) // no sample yet
  expect(await metrics.render(NO_FIGURES)).toContain('{surface="public",code="200"} 2\n')
})

longTest('the delay of an event loop that is not late is near 0, and has what blocks it', async () => {
  const metrics = createMetrics()
  const lagOf = async (figure: string): Promise<number> => {
    const line = new RegExp(`^nodejs_eventloop_lag_${figure}_seconds (.+)$`, 'm')
    return Number(line.exec(await metrics.render(NO_FIGURES))?.[1])
  }
  const block = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000)
  setTimeout(block, 1_300) // the first timer of the samples has nothing to compare with
  await expect.poll(() => lagOf('max')).toBeGreaterThan(0.5)
  await expect.poll(() => lagOf('max')).toBeLessThan(0.5)
  expect(await lagOf('min')).toBeLessThan(0.5)
})
