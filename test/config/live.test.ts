import { rmSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { afterReload, compareSettings, usedSettings } from '../../src/config/running/compare.ts'
import { LIVE_KEYS, createLiveConfig } from '../../src/config/running/live.ts'
import { faultsOfSecretFiles } from '../../src/config/secret-files.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { fileWith, load } from './loading.ts'

const warn = (): void => undefined

test('every live setting exists', () => {
  const keys = new Set(SETTINGS.map(({ key }) => key))
  expect([...LIVE_KEYS].filter((key) => !keys.has(key))).toEqual([])
  expect(LIVE_KEYS.has('relay.targets')).toBe(true)
})

test('live settings follow the newest settings, all others stay as they were', () => {
  const started = load({
    env: { PATCHMIRROR_SERVER_LISTEN: 'localhost:1', PATCHMIRROR_OSV_SCHEDULE: '1 * * * *' },
  })
  const live = createLiveConfig(started.config, { offline: false, warn })
  const { server, osv } = live.config
  const next = load({
    env: {
      PATCHMIRROR_SERVER_LISTEN: 'localhost:2',
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

test('of the settings in use only digests are known that confirm no guess, and what differs by how it gets in force', () => {
  const at = (key: string, proxy: string, level: string) =>
    load({
      env: {
        PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.example.com',
        PATCHMIRROR_UPSTREAM_API_KEY: key,
        PATCHMIRROR_UPSTREAM_PROXY: proxy,
        PATCHMIRROR_LOG_LEVEL: level,
      },
    }).config
  const config = at('Xq7-first-of-the-keys-92', 'http://me:Xq7-word@proxy:1', 'info')
  const used = usedSettings(config)
  expect(compareSettings(used, config)).toEqual({ reload: [], restart: [] })
  expect(Object.values(used.digests).every((digest) => /^[0-9a-f]{4}$/.test(digest))).toBe(true)
  expect(usedSettings(config).digests).not.toEqual(used.digests)
  const next = at('Xq7-second-of-the-keys-93', 'http://me:Xq7-other@proxy:1', 'debug')
  expect(compareSettings(used, next)).toEqual({
    reload: ['log.level'],
    restart: ['upstream.apiKey', 'upstream.proxy'],
  })
  expect(compareSettings(afterReload(used, next), next).reload).toEqual([])
})

test('the file of a secret that cannot be used any more is named with its fault, and no value', () => {
  const file = fileWith('Xq7-first-of-the-keys-92')
  const { config } = load({ env: { PATCHMIRROR_SERVER_KEYS_FILE: file } })
  expect(faultsOfSecretFiles(config)).toEqual([])
  writeFileSync(file, ' \n')
  expect(faultsOfSecretFiles(config)).toEqual([{ key: 'server.keys', fault: 'is empty' }])
  writeFileSync(file, ',\n')
  expect(faultsOfSecretFiles(config)).toEqual([{ key: 'server.keys', fault: 'is empty' }])
  writeFileSync(file, 'Xq7')
  expect(faultsOfSecretFiles(config)).toEqual([
    { key: 'server.keys', fault: expect.stringMatching(/^contains a value that (?!.*Xq7)/) as string },
  ])
  rmSync(file)
  expect(faultsOfSecretFiles(config)).toEqual([
    { key: 'server.keys', fault: expect.stringContaining('there is no such file') as string },
  ])
})

test('a secret in a file that the daemon follows differs by its file alone', () => {
  const file = fileWith('Xq7-first-of-the-keys-92')
  const env = { PATCHMIRROR_UPSTREAM_API_KEY_FILE: file }
  const used = usedSettings(load({ env }).config)
  writeFileSync(file, 'Xq7-second-of-the-keys-93')
  expect(compareSettings(used, load({ env }).config).restart).toEqual([])
  const given = { PATCHMIRROR_UPSTREAM_API_KEY: 'Xq7-second-of-the-keys-93' }
  expect(compareSettings(used, load({ env: given }).config).restart).toEqual(['upstream.apiKey'])
})
