import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { cronPeriod } from '../../../src/sync/schedule.ts'

const ROOT = { PATCHMIRROR_UPSTREAM_API_ROOT: 'https://service.test' }

const warningsOf = (env: Record<string, string>): readonly string[] =>
  loadConfig({ env: { ...ROOT, ...env }, cwd: tmpdir(), cronPeriod }).warnings

test.each([
  [{ PATCHMIRROR_CATALOG_SCOPE: 'all' }, /^catalog\.scope \(env .+no credential.+upstream\.apiKey/],
  [
    { PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=3', PATCHMIRROR_OSV_SCHEDULE: '0 */6 * * *' },
    /^sync\.maxAgeHours .+3 hours are shorter than the 6 hours.+osv\.schedule/,
  ],
  [
    { PATCHMIRROR_OSV_SCHEDULE: '0 6 * * 1-5', PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=80' },
    /^sync\.maxAgeHours .+: 26 hours are shorter than the 72 hours .+so the data of feeds is stale/,
  ],
  [
    { PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=0.5' },
    /^sync\.maxAgeHours \(env .+: 0\.5 hours are shorter than the 1 hour between.+osv\.schedule \(default\)/,
  ],
  [{ PATCHMIRROR_VIEWS_SERVE: 'derived,query' }, /^views\.serve .+derived and not bucket.+Add bucket/],
  [{ PATCHMIRROR_VIEWS_SERVE: 'vex,findings' }, /^views\.serve .+findings and not query.+Add query/],
  [
    {
      PATCHMIRROR_UPSTREAM_API_ROOT: 'http://localhost:9',
      PATCHMIRROR_UPSTREAM_PROXY: 'http://proxy.example:3128',
    },
    /^upstream\.proxy .+never asked through a proxy/,
  ],
])('settings that contradict each other cause a warning: %o', (env, warning) => {
  expect(warningsOf(env as Record<string, string>)).toEqual([expect.stringMatching(warning)])
})

test('a schedule that the usual age does not allow causes one warning for all sources that it syncs', () => {
  const text = String.raw`^sync\.maxAgeHours \(default\): 26 hours are shorter than the 168 hours .+so the data of feeds and osv is stale`
  expect(warningsOf({ PATCHMIRROR_OSV_SCHEDULE: '0 6 * * 0' })).toEqual([expect.stringMatching(text)])
  expect(warningsOf({ PATCHMIRROR_SYNC_MAX_AGE_HOURS: '0.5' })).toHaveLength(2)
})

test('settings that agree cause no warning', () => {
  expect(warningsOf({})).toEqual([])
  expect(
    warningsOf({
      PATCHMIRROR_CATALOG_SCOPE: 'all',
      PATCHMIRROR_UPSTREAM_TOKEN: 'abcdefgh',
      PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=1',
      PATCHMIRROR_VIEWS_SERVE: 'vex',
    }),
  ).toEqual([])
})
