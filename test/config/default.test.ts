import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { parsedDefaults, readDefaults } from '../../src/config/defaults.ts'
import type { Config } from '../../src/config/schema.ts'
import { SECTIONS, SETTINGS } from '../../src/config/settings.ts'
import { load } from './loading.ts'

const text = readFileSync(new URL('../../config/default.yaml', import.meta.url), 'utf8')

test('default.yaml and the schema name exactly the same keys, in the same order', () => {
  const sections = Object.entries(parse(text) as Record<string, Record<string, unknown>>)
  const keys = sections.flatMap(([section, values]) => Object.keys(values).map((name) => `${section}.${name}`))
  expect(keys).toEqual(SETTINGS.map(({ key }) => key))
})

test('every default validates and is known to be a default', () => {
  const { origins, warnings } = load()
  expect(new Set(origins.values())).toEqual(new Set(['default']))
  expect([...origins.keys()].sort()).toEqual(SETTINGS.map(({ key }) => key).sort())
  expect(warnings).toEqual([])
})

test('defaults as the build parses them are used, unless the file is another since', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-defaults-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'default.yaml')
  const parsed = join(dir, 'defaults.json')
  const valuesOf = ({ given }: ReturnType<typeof readDefaults>) =>
    given.map(({ setting, raw, origin }) => [setting.key, raw, origin])
  writeFileSync(file, text)
  const read = readDefaults(file, parsed)
  expect(read.given).toHaveLength(SETTINGS.length)
  writeFileSync(parsed, parsedDefaults(file))
  expect(valuesOf(readDefaults(file, parsed))).toEqual(valuesOf(read))

  const marked = JSON.parse(parsedDefaults(file)) as { values: Record<string, unknown> }
  marked.values['server.listen'] = 'localhost:1'
  writeFileSync(parsed, JSON.stringify(marked))
  const portOf = () => valuesOf(readDefaults(file, parsed)).find(([key]) => key === 'server.listen')
  expect(portOf()).toEqual(['server.listen', 'localhost:1', 'default'])
  writeFileSync(file, text.replace(/^ {2}listen: 127\S+$/m, '  listen: localhost:2'))
  expect(portOf()).toEqual(['server.listen', 'localhost:2', 'default'])
  writeFileSync(file, text)
  writeFileSync(parsed, '{')
  expect(valuesOf(readDefaults(file, parsed))).toEqual(valuesOf(read))
  rmSync(file)
  expect(readDefaults(file, parsed).problems).toEqual([expect.stringContaining('no such file')])
  expect(() => parsedDefaults(file)).toThrow('no such file')
})

test('every section or setting is introduced by a comment, alone or with its neighbours', () => {
  const paragraphs = text.split(/\n\n+/)
  for (const { name } of SETTINGS) {
    const own = paragraphs.filter((paragraph) => new RegExp(`^ {2}${name}:`, 'm').test(paragraph))
    expect(own.length, name).toBeGreaterThan(0)
    for (const paragraph of own) expect(paragraph, name).toMatch(/^ {2}# /m)
  }
})

/** The settings alone, without what is derived from them. */
function settingsOf(config: Config): object {
  const of = (section: string): [string, unknown][] =>
    Object.entries(config[section as keyof Config] ?? {}).filter(([name]) =>
      SETTINGS.some(({ key }) => key === `${section}.${name}`),
    )
  return Object.fromEntries(SECTIONS.map((section) => [section, Object.fromEntries(of(section))]))
}

test('the defaults are those that the manual documents', () => {
  expect(settingsOf(load().config)).toEqual({
    upstream: {
      apiRoot: null,
      catalogUrl: null,
      apiKey: null,
      token: null,
      vendor: 'service',
      proxy: null,
      caFile: null,
      userAgent: null,
      concurrency: 16,
      maxBytes: { json: 256_000_000, record: 32_000_000, archive: 8_000_000_000, list: 1_000_000_000 },
    },
    oauth: { clientId: null, clientSecret: null, authUrl: null, audience: null },
    network: { trusted: [] },
    data: { dir: '/srv/mirror/data', historyDays: 90 },
    osv: {
      schedule: '7 * * * *',
      reconcileSchedule: '23 3 * * *',
      scope: [],
    },
    guard: {
      mode: 'enforce',
      limit: { changed: '1% and 20', removed: '10% and 20' },
      window: '7d',
    },
    feeds: {
      extraPaths: ['/external/cve_feed'],
    },
    catalog: {
      scope: 'subscribed',
      patterns: [],
      personalData: [],
      sendCredential: false,
      schedule: '37 * * * *',
      reconcileHours: 24,
      signatures: null,
      trustRoot: [],
      signers: [],
    },
    identity: {
      apiUrl: null,
      apiKey: null,
      tier: 'free',
    },
    sync: { maxAgeHours: 26 },
    server: {
      listen: '127.0.0.1:8080',
      certFile: null,
      keyFile: null,
      keys: [],
      linkSecretFile: null,
      openLoopback: false,
      publicUrl: null,
      trustProxy: [],
      cacheBytes: 64_000_000,
      keepAliveSeconds: 75,
      maxConnections: 4096,
      maxConnectionsPerAddress: 1024,
      strictParameters: true,
      staleAction: 'serve',
    },
    webhooks: {
      endpoints: ['default=/-/webhooks'],
      secrets: [],
      dialect: 'any',
      types: [
        'io.service.cr.image.created.v*',
        'io.{vendor}.cr.image.created.v*',
        'io.patchmirror.snapshot.published.v*',
      ],
      listen: null,
      certFile: null,
      keyFile: null,
      allowedOrigins: [],
    },
    relay: {
      targets: [],
      secret: null,
      events: ['snapshot', 'webhook'],
    },
    edge: { maxAgeSeconds: 0, tagHeader: 'none', purge: [] },
    views: { serve: ['bucket', 'derived', 'query', 'vex', 'findings'], vendors: ['Root'] },
    images: { registry: null },
    bundle: {
      signingKeys: [],
      trustedKeys: [],
      expireDays: 90,
      outbox: null,
      inbox: null,
      keep: 30,
      fullDays: 7,
    },
    fleet: {
      url: null,
      endpoint: null,
      role: 'auto',
      name: null,
      leaseSeconds: 30,
      keepDays: 14,
    },
    log: { level: 'info', format: 'auto', access: false, file: null },
  })
})

test('example.yaml loads without errors, and its upstream settings are complete', () => {
  const file = new URL('../../config/example.yaml', import.meta.url).pathname
  const { config, origins } = load({ file, requireUpstream: true })
  expect(config.upstream.apiRoot).toBe('https://api.example.com')
  expect(origins.get('server.listen')).toBe(`file ${file}`)
  expect(origins.get('server.keepAliveSeconds')).toBe('default')
})
