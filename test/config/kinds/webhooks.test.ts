import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { describeConfig } from '../../../src/config/describe.ts'
import { decodedKey } from '../../../src/config/kinds/keys.ts'
import { endpointsOf, secretFilePath } from '../../../src/config/kinds/webhooks.ts'
import { fileWith, load, loadYaml, refusal } from '../loading.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const OTHER = 'mirror-hook!signing*secret~2026-11-21'

test('webhook secrets are read from the environment, separated by commas, and from a file, one per line', () => {
  const env = { PATCHMIRROR_WEBHOOKS_SECRETS: `${SECRET}, ${OTHER}` }
  expect(load({ env }).config.webhooks.secrets).toEqual([SECRET, OTHER])
  const file = fileWith(`${SECRET}\n${OTHER}\n`, 'secrets')
  const named = { PATCHMIRROR_WEBHOOKS_SECRETS_FILE: file }
  expect(load({ env: named }).config.webhooks.secrets).toEqual([SECRET, OTHER])
})

test('webhook secrets are accepted as a dashboard prints them, and a public key too', () => {
  const key = `whpk_${Buffer.from('0123456789abcdefghijklmnopqrstuv').toString('base64')}`
  const text = `v1,${SECRET},${OTHER}, v1,whsec_${OTHER} ,v1a,${key}`
  const all = [SECRET, OTHER, `whsec_${OTHER}`, key]
  const env = { PATCHMIRROR_WEBHOOKS_SECRETS: text }
  expect(load({ env }).config.webhooks.secrets).toEqual(all)
  const lines = fileWith(`v1,${SECRET}\n${OTHER}\r\nv1,whsec_${OTHER}\nv1a,${key}\n`, 'secrets')
  const named = { PATCHMIRROR_WEBHOOKS_SECRETS_FILE: lines }
  expect(load({ env: named }).config.webhooks.secrets).toEqual(all)
  const yaml = loadYaml(JSON.stringify({ webhooks: { secrets: [`v1,${SECRET}`, key], dialect: 'standard' } }))
  expect(yaml.config.webhooks.secrets).toEqual([SECRET, key])
})

test('keys of a pair are refused as HMAC secrets, with what to set instead, and not quoted', () => {
  const bytes = Buffer.from('0123456789abcdefghijklmnopqrstuv').toString('base64')
  const cases: [string, string, string][] = [
    ['PATCHMIRROR_WEBHOOKS_SECRETS', `whsk_${bytes}`, 'a receiver takes the public key (whpk_)'],
    ['PATCHMIRROR_WEBHOOKS_SECRETS', `whpk_${bytes.slice(0, 20)}`, 'is no public key'],
    ['PATCHMIRROR_RELAY_SECRET', `whpk_${bytes}`, 'cannot be an HMAC secret'],
    ['PATCHMIRROR_RELAY_SECRET', `whsk_${bytes}`, "is the sender's private key"],
  ]
  for (const [name, value, fault] of cases) {
    const message = refusal(() => load({ env: { [name]: value } }))
    expect(message).toContain(fault)
    expect(message).not.toContain(bytes.slice(0, 20))
  }
})

test('no webhook secret is quoted in a refusal, in the listing or in a dump', () => {
  const text = 'whsec_' + 'hunter2'.repeat(2)
  const message = refusal(() => load({ env: { PATCHMIRROR_WEBHOOKS_SECRETS: text } }))
  expect(message).toContain('webhooks.secrets (env PATCHMIRROR_WEBHOOKS_SECRETS)')
  expect(message).toContain('at least 16 characters that are hard to guess')
  expect(message).not.toContain('hunter2')
  const loaded = load({ env: { PATCHMIRROR_WEBHOOKS_SECRETS: SECRET } })
  const shown = inspect(loaded.config, { depth: 9 }) + JSON.stringify(describeConfig(loaded))
  expect(shown).toContain('********')
  expect(shown).not.toContain(SECRET.slice(6))
})

const PEM = fileAt('-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n')
const KEY = fileAt('-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n')

function fileAt(content: string): () => string {
  return () => fileWith(content, 'file.pem')
}

test.each([
  [{ certFile: PEM, listen: '0.0.0.0:8443' }, 'webhooks.keyFile: not set, though webhooks.certFile (file '],
  [{ keyFile: KEY, listen: '0.0.0.0:8443' }, 'webhooks.certFile: not set, though webhooks.keyFile (file '],
  [{ certFile: PEM, keyFile: KEY }, 'webhooks.listen: not set, though webhooks.certFile (file '],
  [{ listen: '127.0.0.1:8080' }, 'webhooks.listen: 127.0.0.1:8080 is server.listen'],
  [{ endpoints: [] }, 'webhooks.endpoints: names none'],
  [{ endpoints: ['b=/-/webhooks', 'a=/-/webhooks'] }, 'b=/-/webhooks and a=/-/webhooks'],
  [{ endpoints: ['a=/a', 'a=/b'] }, 'a=/a and a=/b have the same name'],
  [{ dialect: 'standard', secrets: [SECRET, OTHER] }, '(entry 2) is not base64'],
])('webhook settings that contradict each other are refused: %j', (settings, fault) => {
  expect(refusal(() => loadYaml(JSON.stringify({ webhooks: made(settings) })))).toContain(fault)
})

test.each([
  [{ certFile: PEM, keyFile: KEY, listen: '0.0.0.0:8443' }],
  [{ listen: '192.0.2.1:8080' }],
  [{ listen: '127.0.0.1:0' }],
  [{ dialect: 'vendor', secrets: [OTHER] }],
  [{ dialect: 'decoded-hex', secrets: [SECRET] }],
])('webhook settings that agree are accepted: %j', (settings) => {
  expect(() => loadYaml(JSON.stringify({ webhooks: made(settings) }))).not.toThrow()
})

/** Files are made when the test runs. */
function made(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      typeof value === 'function' ? (value as () => string)() : value,
    ]),
  )
}

test('a private key file must contain a private key', () => {
  const fault = refusal(() => loadYaml(JSON.stringify({ webhooks: { keyFile: PEM() } })))
  expect(fault).toContain('contains no PEM private key')
  const lost = refusal(() => loadYaml(JSON.stringify({ webhooks: { keyFile: '/none/key.pem' } })))
  expect(lost).toContain('cannot be read (there is no such file: check the path)')
})

test('the secret file is in the data folder', () => {
  expect(secretFilePath(load().config)).toBe('/srv/mirror/data/webhook-secrets.json')
})

test('the webhook endpoints are those that are named, in their order', () => {
  const { config } = loadYaml('webhooks: { endpoints: [default=/-/webhooks, staging=/-/hooks/staging] }')
  expect(endpointsOf(config.webhooks)).toEqual([
    { name: 'default', path: '/-/webhooks' },
    { name: 'staging', path: '/-/hooks/staging' },
  ])
})

test('a secret is decoded when it is canonical base64, with or without prefix and padding', () => {
  const key = Buffer.from('000102030405060708090a0b0c0d0e0f10111213', 'hex')
  const text = key.toString('base64')
  for (const form of [text, text.replace(/=+$/, ''), `whsec_${text}`]) expect(decodedKey(form)).toEqual(key)
  for (const form of [OTHER, `${text}=`, '', 'whsec_']) expect(decodedKey(form)).toBeNull()
})
