import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { formatConfig } from '../../../src/config/describe.ts'
import { fileWith, load, loadYaml, refusal } from '../loading.ts'

const ROOT = 'apiRoot: https://api.example.com'
const OAUTH = 'clientId: c, clientSecret: hunter2, authUrl: https://auth.example.com'

describe('a credential', () => {
  test.each([
    [`upstream: { ${ROOT}, apiKey: hunter2 }`],
    [`upstream: { ${ROOT}, token: hunter2 }`],
    [`upstream: { ${ROOT} }\noauth: { ${OAUTH}, audience: aud }`],
    [`upstream: { ${ROOT} }\noauth: { ${OAUTH} }\nidentity: { apiUrl: https://i.example.com/v1, apiKey: t }`],
    [`upstream: { ${ROOT}, apiKey: k }\noauth: { ${OAUTH} }\nidentity: { apiUrl: https://i.example.com/v1 }`],
  ])('is accepted in each of its forms: %s', (yaml) => {
    expect(() => loadYaml(yaml)).not.toThrow()
  })

  test('of more than one kind is refused, with the place of each and without the values', () => {
    const env = { PATCHMIRROR_UPSTREAM_TOKEN: 'hunter3' }
    const message = refusal(() => loadYaml(`upstream: { ${ROOT}, apiKey: hunter2 }`, { env }))
    expect(message).toMatch(
      /upstream\.apiKey \(file .+\) and upstream\.token \(env PATCHMIRROR_UPSTREAM_TOKEN\): more than one credential for the remediation surface/,
    )
    expect(message).not.toContain('hunter')
    const both = `upstream: { ${ROOT}, apiKey: hunter2 }\noauth: { ${OAUTH}, audience: aud }`
    const unused = refusal(() => loadYaml(both))
    expect(unused).toMatch(/oauth\.clientId .+nothing uses this client, because upstream\.apiKey \(.+\) is set/)
    expect(unused).not.toContain('hunter')
    const identity = 'identity: { apiUrl: https://i/v1, apiKey: t }'
    expect(refusal(() => loadYaml(`${both}\n${identity}`))).toMatch(
      /upstream\.apiKey .+ and identity\.apiKey .+ are set/,
    )
  })

  test.each([
    ['clientId: c, authUrl: https://a, audience: x', 'oauth.clientSecret: not set, though'],
    ['clientSecret: s, authUrl: https://a, audience: x', 'oauth.clientId: not set, though'],
    ['clientId: c, clientSecret: s, audience: x', 'oauth.authUrl: not set, though'],
    ['clientId: c, clientSecret: s, authUrl: https://a', 'oauth.audience: not set, though'],
  ])('of a client must be complete: %s', (yaml, problem) => {
    expect(refusal(() => loadYaml(`oauth: { ${yaml} }`))).toContain(problem)
  })

  test('is not also reported as missing where it was refused', () => {
    const yaml = 'oauth: { clientId: "a b", clientSecret: s, authUrl: https://a, audience: x }'
    expect(refusal(() => loadYaml(yaml))).toContain('1 problem')
  })

  test.each([
    ['apiKey', 'Bearer hunter2', 'begins with Bearer or Basic'],
    ['token', 'two hunter2', 'contains spaces'],
    ['token', 'ünï-hunter2', 'contains spaces or characters that a header must not contain'],
  ])('with characters that a header cannot contain is refused without being quoted: %s %s', (name, value, fault) => {
    const message = refusal(() => loadYaml(`upstream: { ${name}: "${value}" }`))
    expect(message).toContain(`the value ${fault}`)
    expect(message).not.toContain('hunter2')
  })

  test('may come from a file of its own', () => {
    const env = { PATCHMIRROR_UPSTREAM_API_KEY_FILE: fileWith('hunter2\n', 'key') }
    expect(load({ env }).config.upstream.apiKey).toBe('hunter2')
  })

  test('for the identity surface needs that surface', () => {
    for (const yaml of ['identity: { apiKey: t }', 'catalog: { personalData: [users] }'])
      expect(refusal(() => loadYaml(yaml))).toContain('identity.apiUrl: not set')
  })
})

describe('plain http', () => {
  test.each([
    ['upstream: { apiRoot: http://api.example.com, apiKey: k }', 'upstream.apiRoot'],
    ['oauth: { clientId: c, clientSecret: s, audience: x, authUrl: http://a }', 'oauth.authUrl'],
    [
      `upstream: { ${ROOT}, apiKey: k, catalogUrl: http://c }\ncatalog: { sendCredential: true }`,
      'upstream.catalogUrl',
    ],
    ['identity: { apiUrl: http://i/v1, apiKey: t }', 'identity.apiUrl'],
  ])('to another machine is refused for a credential: %s', (yaml, key) => {
    const message = refusal(() => loadYaml(yaml))
    expect(message).toContain(`${key} (file `)
    expect(message).toMatch(/name \S+ in network\.trusted/)
    expect(message).toContain('1 problem')
  })

  test.each([
    'upstream: { apiRoot: http://api.example.com }',
    'upstream: { apiRoot: http://api.example.com, apiKey: k }\nnetwork: { trusted: [api.example.com] }',
    'upstream: { apiRoot: http://localhost:8080, apiKey: k }',
    'upstream: { apiRoot: http://127.0.0.2:8080, apiKey: k }',
    'upstream: { apiRoot: "http://[::1]:8080", apiKey: k, catalogUrl: http://catalog.example.com }',
    'identity: { apiUrl: http://10.1.2.3/v1, apiKey: t }\nnetwork: { trusted: [10.0.0.0/8] }',
  ])('is accepted without a credential, on loopback, or where it is allowed: %s', (yaml) => {
    expect(() => loadYaml(yaml)).not.toThrow()
  })

  test('the catalog is sent a credential only when one is configured', () => {
    expect(refusal(() => loadYaml('catalog: { sendCredential: true }'))).toContain('upstream has no credential to send')
  })
})

describe('a key of this mirror', () => {
  const good = 'b7e2f0c94d1a8365'

  test('is read from the environment or a file, also several keys', () => {
    const other = 'Zx81-spectrum-48K!'
    const env = { PATCHMIRROR_SERVER_KEYS: `${good}, ${other}` }
    expect(load({ env }).config.server.keys).toEqual([good, other])
    const file = { PATCHMIRROR_SERVER_KEYS_FILE: fileWith(`${good}\n${other}\n`, 'keys') }
    expect(load({ env: file }).config.server.keys).toEqual([good, other])
  })

  test.each([
    ['b7e2f0c94d1a836', 'is shorter than 16 characters'],
    ['b7e2f0c9:4d1a8365', 'contains a space, a colon'],
    ['b7e2f0c9 4d1a8365', 'contains a space'],
    ['aaaaaaaaaaaaaaaaaaaa', 'is easy to guess'],
    ['12345678901234567890', 'is easy to guess'],
    ['abcdefghijklmnopqrst', 'is easy to guess'],
    ['passwordpassword', 'is easy to guess'],
    ['patchmirror-secret-1', 'is easy to guess'],
    ['x7Kq2pLmx7Kq2pLm', 'is easy to guess'],
  ])('that is weak is refused without being quoted: %s', (key, fault) => {
    const message = refusal(() => loadYaml(`server: { keys: ["${key}"] }`))
    expect(message).toContain(`the value (entry 1) ${fault}`)
    expect(message).not.toContain(key)
  })
})

test('no secret is shown when the settings are listed, dumped or logged', () => {
  const loaded = loadYaml(`upstream: { ${ROOT}, apiKey: hunter2 }\nserver: { keys: [b7e2f0c94d1a8365] }`)
  for (const shown of [
    formatConfig(loaded, { json: true }),
    formatConfig(loaded, { json: false }),
    inspect(loaded, { depth: 9 }),
    inspect(loaded.config.upstream, { showHidden: false }),
  ]) {
    expect(shown).not.toContain('hunter2')
    expect(shown).not.toContain('b7e2f0c94d1a8365')
  }
  expect(inspect(loaded.config)).toContain("apiKey: '********'")
  expect(structuredClone(loaded.config).upstream.apiKey).toBe('hunter2')
})
