import { describe, expect, test } from 'vitest'
import {
  deliveryStateIn,
  itemIdOf,
  itemIn,
  itemListOf,
  secretIn,
  textOf,
} from '../../../src/features/account/service-answer.ts'

const URL = 'https://hooks.example.com/-/webhooks'
const ID = '8f14e45f-ceea-467f-a0e6-6b4b4c5d6e7f'
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const RAW = 'b3BlbnNzbC1yYW5kLWhleC0yNAo'
const plain = { id: ID, url: URL, event_types: ['a'], description: 'x', organization_id: 'org_1' }
const camel = {
  webhookId: 7,
  webhookUrl: URL,
  eventTypes: ['a'],
  createdAt: '2026-11-22T03:40:00Z',
}

describe('a webhook subscription is found', () => {
  test.each<[string, unknown, object]>([
    ['plain', plain, plain],
    ['in data', { data: plain }, plain],
    ['under its noun', { webhook: plain }, plain],
    ['two levels deep', { data: { webhook: plain, status: 'ok' }, id: 'req_1' }, plain],
    ['in camelCase', { result: camel }, camel],
    ['beside its secret', { webhook: plain, secret: SECRET }, plain],
    [
      'around other objects',
      { ...plain, organization: { id: 'org_1', name: 'x' } },
      { ...plain, organization: { id: 'org_1', name: 'x' } },
    ],
  ])('%s', (_, answer, item) => {
    const found = itemIn('/v3', answer, 'webhook')
    expect(found).toEqual(item)
    expect(itemIdOf(found)).toBe(item === camel ? '7' : ID)
    expect([textOf(found, 'url'), itemListOf(found, 'eventtypes')]).toEqual([URL, ['a']])
  })

  const bare = { url: URL, event_types: ['a'], description: 'x' }
  test.each<[string, object]>([
    ['around it', { id: ID, secret: SECRET, webhook: bare }],
    ['around its attributes', { data: { id: ID, type: 'webhook', attributes: bare } }],
    ['beside its secret', { webhook: bare, credentials: { id: ID, secret: SECRET } }],
    ['in an envelope of a request', { id: 'req_1', data: { webhook: bare, uuid: ID } }],
    ['beside its organization', { organization: { id: 'org_1' }, webhook: bare, meta: { id: ID } }],
  ])('with the id that lies %s', (_, answer) => {
    const found = itemIn('/v3', answer, 'webhook')
    expect(found).toEqual({ id: ID, ...bare })
    expect(itemIdOf(found)).toBe(ID)
  })

  test.each<[string, object, string]>([
    ['in a list of one', { data: [{ id: 6, secret: RAW }] }, '6'],
    ['in a bare list of one', [{ id: 6, secret: RAW }], '6'],
    ['in a list of one beside others', { request_id: 'x', webhooks: [plain] }, ID],
    [
      'by its noun in an envelope of a request',
      { id: 'req-9', result: { webhook_subscription_id: 6, secret: RAW } },
      '6',
    ],
    ['by its noun in an envelope with an id', { id: ID, result: { webhook_subscription_id: 6 } }, '6'],
    ['by its noun beside a request', { id: 'req-9', webhook_id: 6, url: URL }, '6'],
    ['as a uid', { data: { uid: 'u6', url: URL } }, 'u6'],
    ['by its noun beside the uid of a user', { uid: 1000, webhook_subscription_id: 6 }, '6'],
    ['in the address of itself', { data: { attributes: bare, links: { self: '/v3/settings/webhooks/6' } } }, '6'],
    ['in a link to itself', { ...bare, _links: { self: { href: 'https://a.example/webhooks/6/' } } }, '6'],
  ])('with the id that is %s', (_, answer, id) => {
    expect(itemIdOf(itemIn('/v3', answer, 'webhook'))).toBe(id)
  })

  test('without an id of several in a list', () => {
    const answer = { data: [{ id: 6 }, { id: 7 }] }
    expect(itemIdOf(itemIn('/v3', answer, 'webhook'))).toBeNull()
    expect(secretIn({ data: [{ secret: RAW }, { secret: `${RAW}2` }] }, [])).toBeNull()
  })

  test('without an id where only others have one', () => {
    const answer = { webhook: bare, organization: { id: 'org_1' }, created_by: { id: 7 } }
    expect(itemIdOf(itemIn('/v3', answer, 'webhook'))).toBeNull()
  })

  test.each([null, [], 'text', 7, [plain, plain]])('but not in %j', (answer) => {
    expect(() => itemIn('/v3', answer, 'webhook')).toThrow('not a JSON object')
  })
})

describe('a secret is found', () => {
  test.each<[string, object, string | null]>([
    ['under its name', { ...plain, secret: RAW }, RAW],
    ['wrapped', { data: { webhook: { ...plain, signing_secret: RAW } } }, RAW],
    ['beside the object', { webhook: plain, signingKey: RAW }, RAW],
    ['as a key', { ...plain, key: RAW }, RAW],
    ['by its form', { ...plain, material: SECRET, token_hint: 'abc' }, SECRET],
    ['as a dashboard prints it', { ...plain, hook: `v1,${SECRET}` }, `v1,${SECRET}`],
    ['as a public key', { ...plain, verify: 'whpk_x' }, 'whpk_x'],
    ['as the only text that is nothing known', { ...plain, created_at: '2026-11-22T03:40:00Z', value: RAW }, RAW],
    ['beside an algorithm', { ...plain, signature_algorithm: 'hmac-sha256', hmac_key: RAW }, RAW],
    ['in a list of one', { data: [{ id: 6, secret: RAW }] }, RAW],
    ['nowhere', plain, null],
    ['nowhere, beside ids', { ...plain, secret_id: 'abcdefghijklmnopqrstuvwxyz' }, null],
    ['nowhere, of two texts', { ...plain, one: `${RAW}1`, two: `${RAW}2` }, null],
  ])('%s', (_, answer, secret) => {
    expect(secretIn(answer, [URL, 'x'])).toBe(secret)
  })
})

test.each<[unknown, string | null]>([
  [{ status: 'delivered' }, 'delivered'],
  [{ data: { delivery: { deliveryStatus: 'DELIVERED' } } }, 'delivered'],
  [{ delivery: { status: 'failed' } }, 'failed'],
  [{ status: 'ok', data: { status: 'failed' } }, 'failed'],
  [{ status: 'delivered', data: { delivery_status: 'failed' } }, 'failed'],
  [{ status: 'success', data: { id: 'x' } }, null],
  [{ data: { status: 'pending', http_status: 200 } }, 'pending'],
  [{ http_status: 200 }, null],
  [{ status: 200 }, null],
  [{}, null],
  [null, null],
  [[{ status: 'delivered' }], null],
])('what became of a delivery is read from %j as %j', (answer, state) => {
  expect(deliveryStateIn(answer)).toBe(state)
})
