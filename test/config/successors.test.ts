import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import type { LoadOptions } from '../../src/config/load.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { fileWith, load, refusal } from './loading.ts'

/** Settings that others have replaced. */
const REPLACED = [
  'guard.fixLowered',
  'guard.rangesLostRecords',
  'guard.limitShare',
  'guard.windowDays',
  'osv.guardFraction',
  'feeds.guardEntries',
  'catalog.guardItems',
  'osv.maxAgeHours',
  'identity.staleAction',
  'data.tombstoneDays',
  'history.keepDays',
  'upstream.maxJsonBytes',
  'upstream.maxRecordBytes',
  'upstream.maxArchiveBytes',
  'catalog.maxListBytes',
  'catalog.concurrency',
  'osv.include',
  'catalog.exclude',
  'catalog.avrIds',
  'catalog.mirrorApiKeys',
  'identity.mirrorUsers',
  'upstream.clientSecret',
  'identity.authUrl',
  'identity.audience',
  'identity.token',
  'upstream.allowPlainHttp',
  'catalog.allowPrivateArtifacts',
  'server.port',
  'server.socketMode',
  'webhooks.host',
  'webhooks.path',
  'fleet.region',
  'fleet.pathStyle',
  'fleet.soleWriter',
  'fleet.site',
  'relay.chatTargets',
  'views.bucket',
  'match.tags',
  'feeds.schedule',
  'identity.schedule',
]

/** What is wrong with the value of a setting by itself; it may need others beside it. */
function faultsOf(key: string, options: Partial<LoadOptions>): string[] {
  try {
    load(options)
    return []
  } catch (error) {
    return String(error)
      .split('\n')
      .filter((line) => line.includes(`${key} (`) && line.includes('Allowed:'))
  }
}

/** The successor that a message names, and its value. */
function namedIn(message: string): { key: string; value: string } {
  const [, key = '', value = ''] = /no longer there; (\S+) takes its place, for example (.+)$/m.exec(message) ?? []
  return { key, value }
}

describe('a setting of an earlier version', () => {
  test.each([
    ['fixLowered: enforce', 'guard.fixLowered', 'guard.mode', 'enforce'],
    ['rangesLostRecords: 20', 'guard.rangesLostRecords', 'guard.limit', '{ changed: 1% and 20 }'],
    ['severityChangedFraction: 0.05', 'guard.severityChangedFraction', 'guard.limit', '{ changed: 1% and 20 }'],
  ])('is named with its successor: %s', (line, old, successor, value) => {
    const path = fileWith(`guard:\n  ${line}\n`)
    expect(refusal(() => load({ file: path }))).toContain(
      `${old} (file ${path}, line 2): this setting is no longer there; ${successor} takes its place, for example ${value}`,
    )
  })

  test.each(REPLACED)('is named with a setting that takes the value which the message shows: %s', (former) => {
    const [section = '', name = ''] = former.split('.')
    const file = namedIn(refusal(() => load({ file: fileWith(`${section}:\n  ${name}: x\n`) })))
    const [ownSection = '', ownName = ''] = file.key.split('.')
    const yaml = stringify({ [ownSection]: { [ownName]: parse(file.value) as unknown } })
    expect(faultsOf(file.key, { file: fileWith(yaml) })).toEqual([])

    const words = former.replace('.', '_').replace(/[A-Z]/g, (letter) => `_${letter}`)
    const variable = namedIn(refusal(() => load({ env: { [`PATCHMIRROR_${words.toUpperCase()}`]: 'x' } })))
    const successor = SETTINGS.find(({ env }) => env === variable.key)
    expect(successor?.key).toBe(file.key)
    expect(faultsOf(file.key, { env: { [variable.key]: variable.value } })).toEqual([])
  })

  test('is named when a variable has it, and one without a successor is to be removed', () => {
    const env = { PATCHMIRROR_GUARD_ECOSYSTEM_CHANGED_RECORDS: '5', PATCHMIRROR_GUARD_FUTURE_DAYS: '3' }
    expect(refusal(() => load({ env }))).toMatch(
      /PATCHMIRROR_GUARD_ECOSYSTEM_CHANGED_RECORDS: .*; PATCHMIRROR_GUARD_LIMIT takes its place, for example changed=1% and 20[\s\S]*PATCHMIRROR_GUARD_FUTURE_DAYS: .*nothing takes its place; remove it/,
    )
  })

  test.each([
    ['upstream.connectTimeoutMs', 'PATCHMIRROR_UPSTREAM_CONNECT_TIMEOUT_MS', '10 seconds'],
    [
      'upstream.archiveTimeoutMs',
      'PATCHMIRROR_UPSTREAM_ARCHIVE_TIMEOUT_MS',
      'one hour, and the next run resumes a download',
    ],
    ['upstream.requestTimeoutMs', 'PATCHMIRROR_UPSTREAM_REQUEST_TIMEOUT_MS', '60 seconds'],
    ['upstream.lowSpeedSeconds', 'PATCHMIRROR_UPSTREAM_LOW_SPEED_SECONDS', '30 seconds'],
    ['upstream.retries', 'PATCHMIRROR_UPSTREAM_RETRIES', '4'],
    ['upstream.retryMinMs', 'PATCHMIRROR_UPSTREAM_RETRY_MIN_MS', 'half a second'],
    ['upstream.retryAfterMaxSeconds', 'PATCHMIRROR_UPSTREAM_RETRY_AFTER_MAX_SECONDS', '300 seconds'],
    ['data.keepRuns', 'PATCHMIRROR_DATA_KEEP_RUNS', '500 runs of each source'],
    ['osv.maxSingleFetches', 'PATCHMIRROR_OSV_MAX_SINGLE_FETCHES', '5000 records'],
    ['catalog.reconcileSchedule', 'PATCHMIRROR_CATALOG_RECONCILE_SCHEDULE', 'each 15 minutes'],
    ['catalog.maxListPages', 'PATCHMIRROR_CATALOG_MAX_LIST_PAGES', '10000 pages'],
    ['catalog.listTimeoutMs', 'PATCHMIRROR_CATALOG_LIST_TIMEOUT_MS', '15 minutes'],
    ['catalog.maxArtifactBytes', 'PATCHMIRROR_CATALOG_MAX_ARTIFACT_BYTES', '1 GB'],
    ['catalog.artifactTimeoutMs', 'PATCHMIRROR_CATALOG_ARTIFACT_TIMEOUT_MS', '10 minutes'],
    ['osv.archiveThreshold', 'PATCHMIRROR_OSV_ARCHIVE_THRESHOLD', '250 records'],
    ['sync.jitterSeconds', 'PATCHMIRROR_SYNC_JITTER_SECONDS', '60 seconds'],
    ['sync.catchUp', 'PATCHMIRROR_SYNC_CATCH_UP', 'true'],
    ['verify.schedule', 'PATCHMIRROR_VERIFY_SCHEDULE', 'weekly, on Sunday at 04:43'],
    ['webhooks.secretFile', 'PATCHMIRROR_WEBHOOKS_SECRET_FILE', 'webhook-secrets.json in data.dir'],
    ['webhooks.debounceMs', 'PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS', '2 seconds'],
    ['bundle.pollSeconds', 'PATCHMIRROR_BUNDLE_POLL_SECONDS', '10 seconds'],
    ['fleet.pollSeconds', 'PATCHMIRROR_FLEET_POLL_SECONDS', '10 seconds'],
    ['fleet.maxLagSeconds', 'PATCHMIRROR_FLEET_MAX_LAG_SECONDS', '60 seconds'],
    ['webhooks.toleranceSeconds', 'PATCHMIRROR_WEBHOOKS_TOLERANCE_SECONDS', '300 seconds'],
    ['webhooks.maxBytes', 'PATCHMIRROR_WEBHOOKS_MAX_BYTES', '256 KiB'],
    ['webhooks.keepDays', 'PATCHMIRROR_WEBHOOKS_KEEP_DAYS', '30 days'],
    ['webhooks.maxPending', 'PATCHMIRROR_WEBHOOKS_MAX_PENDING', '100000 deliveries'],
    ['webhooks.debounceMaxMs', 'PATCHMIRROR_WEBHOOKS_DEBOUNCE_MAX_MS', '30 seconds'],
    ['relay.waitVisible', 'PATCHMIRROR_RELAY_WAIT_VISIBLE', 'true'],
    ['relay.timeoutMs', 'PATCHMIRROR_RELAY_TIMEOUT_MS', '15 seconds'],
    ['relay.maxDays', 'PATCHMIRROR_RELAY_MAX_DAYS', '4 days'],
    ['relay.concurrency', 'PATCHMIRROR_RELAY_CONCURRENCY', '4 requests'],
    ['bundle.dateHours', 'PATCHMIRROR_BUNDLE_DATE_HOURS', '6 hours'],
    ['fleet.graceHours', 'PATCHMIRROR_FLEET_GRACE_HOURS', '24 hours'],
    ['log.fileMode', 'PATCHMIRROR_LOG_FILE_MODE', '0600, and a file that exists keeps its mode'],
  ])('is named with its value where that is a constant now: %s', (key, variable, value) => {
    const [section = '', name = ''] = key.split('.')
    const path = fileWith(`${section}:\n  ${name}: 1\n`)
    const text = `there is no such setting any more, and the value is always ${value}; remove it`
    expect(refusal(() => load({ file: path }))).toContain(`${key} (file ${path}, line 2): ${text}`)
    expect(refusal(() => load({ env: { [variable]: '1' } }))).toContain(`${variable}: ${text}`)
  })

  test.each(['server.cacheMaxAgeSeconds', 'relay.chatTemplate', 'relay.dialect'])(
    'is named as one that nothing replaces: %s',
    (key) => {
      const [section = '', name = ''] = key.split('.')
      const path = fileWith(`${section}:\n  ${name}: x\n`)
      expect(refusal(() => load({ file: path }))).toContain(
        `${key} (file ${path}, line 2): this setting is no longer there, and nothing takes its place; remove it`,
      )
    },
  )
})
