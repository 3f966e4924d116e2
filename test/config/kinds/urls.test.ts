import { expect, test } from 'vitest'
import { relayTargets } from '../../../src/config/kinds/relay-targets.ts'
import { loadConfig } from '../../../src/config/load.ts'

const load = (env: Record<string, string>) => loadConfig({ env, cwd: '/' }).config.relay
const TARGETS = 'PATCHMIRROR_RELAY_TARGETS'
const SECRET = `whsec_${Buffer.from('0123456789abcdefghijklmn').toString('base64')}`

test('a target is an https URL, or one of this machine, with an optional query', () => {
  const targets = 'https://ci.example.com/hook?token=a,http://127.0.0.1:8081/-/webhooks'
  expect(load({ [TARGETS]: targets }).targets).toEqual(targets.split(','))
})

test.each([
  ['http://ci.example.com/hook', /plain http to another machine/],
  ['https://user:private@ci.example.com/hook', /user name or password/],
  ['https://ci.example.com/#private', /fragment/],
  ['ftp://ci.example.com/private', /not an http/],
  ['private', /not a URL/],
])('%s is refused as a target, and not quoted', (url, why) => {
  expect(() => load({ [TARGETS]: url })).toThrow(why)
  expect(() => load({ [TARGETS]: url })).not.toThrow(/private/)
})

test('a target has a name before its URL, which stands in no other place', () => {
  const targets = [
    'ci=https://ci.example.com/hook?token=a=b',
    'team=chat+https://hooks.example.com/T0',
    'https://x.example/?a=b',
  ]
  expect(relayTargets(load({ [TARGETS]: targets.join(',') }))).toEqual([
    { name: 'ci', url: 'https://ci.example.com/hook?token=a=b', kind: 'standard' },
    { name: 'team', url: 'https://hooks.example.com/T0', kind: 'chat' },
    { name: null, url: 'https://x.example/?a=b', kind: 'standard' },
  ])
})

test.each([
  ['ci=https://a.example/private,ci=https://b.example/private', /two targets have the name ci/],
  ['ci=https://a.example/private,team=https://a.example/private', /a URL is there twice/],
  ['ci=https://a.example/private,chat+https://a.example/private', /a URL is there twice/],
  ['7=https://a.example/private', /not a URL|not an http/],
])('%s is refused, and no URL is quoted', (targets, why) => {
  expect(() => load({ [TARGETS]: targets })).toThrow(why)
  expect(() => load({ [TARGETS]: targets })).not.toThrow(/private/)
})

test('a target with plain http needs a trusted host', () => {
  const url = 'http://ci.example.com/hook'
  const relay = load({ [TARGETS]: url, PATCHMIRROR_NETWORK_TRUSTED: 'ci.example.com' })
  expect(relay.targets).toEqual([url])
})

test('the secret of a target is valid for Standard Webhooks', () => {
  expect(load({ PATCHMIRROR_RELAY_SECRET: SECRET }).secret).toBe(SECRET)
  const odd = { PATCHMIRROR_RELAY_SECRET: 'whsec_not.base64.but.long.enough' }
  expect(() => load(odd)).toThrow(/relay\.secret .*is not whsec_ and base64/)
  expect(() => load(odd)).not.toThrow(/long\.enough/)
})
