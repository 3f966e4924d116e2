import { expect, test } from 'vitest'
import { describeConfig, formatConfig } from '../../src/config/describe.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { maskUrl } from '../../src/config/kinds/urls.ts'
import { load, loadYaml } from './loading.ts'

const secretYaml = 'upstream: { proxy: "http://mirror:hunter2@proxy.example.com:3128" }'

test('every setting is listed with value, origin and variable', () => {
  const shown = describeConfig(load({ env: { PATCHMIRROR_SERVER_KEEP_ALIVE_SECONDS: '90' } }))
  expect(shown.map(({ key }) => key)).toEqual(SETTINGS.map(({ key }) => key))
  expect(shown.find(({ key }) => key === 'server.keepAliveSeconds')).toEqual({
    key: 'server.keepAliveSeconds',
    value: 90,
    origin: 'env PATCHMIRROR_SERVER_KEEP_ALIVE_SECONDS',
    secret: false,
    env: 'PATCHMIRROR_SERVER_KEEP_ALIVE_SECONDS',
  })
})

test('the table is aligned', () => {
  const lines = formatConfig(load(), { json: false }).split('\n')
  expect(lines).toHaveLength(SETTINGS.length)
  expect(lines[0]).toMatch(/^upstream\.apiRoot +\(not set\) +default$/)
  const columns = new Set(lines.map((line) => line.lastIndexOf('  default')))
  expect(columns.size).toBe(1)
})

test('a list is shown with commas, an empty one as none', () => {
  const paths = (yaml: string): string =>
    formatConfig(loadYaml(yaml), { json: false })
      .split('\n')
      .filter((line) => line.startsWith('feeds.extraPaths'))
      .join()
  expect(paths('feeds: { extraPaths: [/external/a, /external/b] }')).toMatch(/ {2}\/external\/a, \/external\/b {2}/)
  expect(paths('feeds: { extraPaths: [] }')).toMatch(/ \(none\) /)
})

test('a secret is masked, and distinguished from one that is not set', () => {
  for (const json of [true, false]) {
    const text = formatConfig(loadYaml(secretYaml), { json })
    expect(text).toContain('********')
    expect(text).not.toContain('hunter2')
    expect(text).not.toContain('proxy.example.com')
  }
  expect(formatConfig(load(), { json: false })).toMatch(/^upstream\.proxy +\(not set\)/m)
})

test('JSON is one object by dotted key', () => {
  const object: unknown = JSON.parse(formatConfig(loadYaml(secretYaml), { json: true }))
  expect(object).toMatchObject({
    'upstream.proxy': { value: '********', secret: true, env: 'PATCHMIRROR_UPSTREAM_PROXY' },
    'server.listen': { value: '127.0.0.1:8080', origin: 'default', secret: false },
    'upstream.apiRoot': { value: null },
    'feeds.extraPaths': { value: ['/external/cve_feed'] },
  })
})

test('the password of a URL is masked in settings that are not secret', () => {
  const loaded = loadYaml('upstream: { userAgent: "https://ops:hunter2@wiki.example.com/" }')
  for (const json of [true, false]) {
    const text = formatConfig(loaded, { json })
    expect(text).toContain('https://ops:********@wiki.example.com/')
    expect(text).not.toContain('hunter2')
  }
})

test.each([
  ['https://api.example.com/a@b', 'https://api.example.com/a@b'],
  ['https://user:pw@host/x', 'https://user:********@host/x'],
  ['https://token@host/x', 'https://********@host/x'],
  ['http://u:p/w@host', 'http://u:********@host'],
  ['see http://u:pw@host or ops@example.com', 'see http://u:********@host or ops@example.com'],
  ['ops@example.com', 'ops@example.com'],
  ['"https://api.example.com/?key=hunter2#c"', '"https://api.example.com/?********#c"'],
  ['https://u:p?w@host/?k=v', 'https://u:********@host/?********'],
  ['https://api.example.com/? or pkg:npm/a?b=c', 'https://api.example.com/? or pkg:npm/a?b=c'],
])('maskUrl(%j) is %j', (text, masked) => {
  expect(maskUrl(text)).toBe(masked)
})

test('every setting can be explained, and only secrets name a file variable', () => {
  for (const { key, env, fileEnv, setting } of SETTINGS) {
    const { secret, allowed, example } = setting
    expect(fileEnv, key).toBe(secret ? `${env}_FILE` : null)
    expect(allowed, key).not.toBe('')
    expect(example, key).not.toBe('')
  }
  expect(SETTINGS.filter(({ setting }) => setting.secret).map(({ key }) => key)).toEqual([
    'upstream.apiKey',
    'upstream.token',
    'upstream.proxy',
    'oauth.clientSecret',
    'identity.apiKey',
    'server.keys',
    'webhooks.secrets',
    'relay.targets',
    'relay.secret',
    'edge.purge',
  ])
})
