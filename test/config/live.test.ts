import { expect, test } from 'vitest'
import { LIVE_KEYS, createLiveConfig } from '../../src/config/live.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { load } from './loading.ts'

const warn = (): void => undefined

test('every live setting exists', () => {
  const keys = new Set(SETTINGS.map(({ key }) => key))
  expect([...LIVE_KEYS].filter((key) => !keys.has(key))).toEqual([])
  expect(LIVE_KEYS.has('relay.targets')).toBe(true)
})

test('live settings follow the newest settings, all others stay as they were', () => {
  const started = load({
    env: { PATCHMIRROR_SERVER_PORT: '1', PATCHMIRROR_OSV_SCHEDULE: '1 * * * *' },
  })
  const live = createLiveConfig(started.config, { offline: false, warn })
  const { server, osv } = live.config
  const next = load({
    env: {
      PATCHMIRROR_SERVER_PORT: '2',
      PATCHMIRROR_SERVER_MAX_CONNECTIONS: '7',
      PATCHMIRROR_OSV_SCHEDULE: '2 * * * *',
    },
  })
  live.replace(next.config)
  expect([server.port, server.maxConnections, osv.schedule]).toEqual([1, 7, '2 * * * *'])
  // What crosses into a thread is copied with the values in force.
  expect(structuredClone({ ...live.config.osv }).schedule).toBe('2 * * * *')
})

test('an offline daemon gets no upstream from newer settings', () => {
  const env = { PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.example.com' }
  const live = createLiveConfig(load({ env }).config, { offline: true, warn })
  live.replace(load({ env }).config)
  expect(live.config.upstream.apiRoot).toBeNull()
})
