import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { SANDBOX_CLIENT, SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { compare } from '../../support/catalog/compare.ts'
import {
  ALL,
  DOCUMENT,
  SBOM,
  SMALL,
  TAG,
  TAG_LIST,
  TWO_PAGES,
  asked,
  bench,
  differences,
  mirrored,
  lackingOf,
} from './fixtures.ts'
import type { Fault } from '../../sandbox/faults/fault.ts'
import type { ShapeName } from '../../sandbox/service/shapes/shape.ts'
import { longTest, test } from '../../support/tables.ts'

const WIDTH = 8 // half of upstream.concurrency as it is by default: what is in flight when the refusal comes
const REFUSED = { kind: 'status', status: 401 } as const

describe('a refused credential', () => {
  test('ends the run after the requests in flight, and is named with its surface', async () => {
    const made = await bench(SMALL, { env: { PATCHMIRROR_UPSTREAM_API_KEY: 'wrong-key' } })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_auth' })
    expect(report.message).toMatch(/upstream\.apiKey was refused by the remediation surface .*: 401/)
    expect(report.message).not.toContain('wrong-key')
    expect(made.sandbox.requests.count()).toBeLessThanOrEqual(WIDTH)
    expect(made.store.snapshots.readSnapshot('catalog')).toBeNull()
  })

  longTest('during the list walks stops all walks and keeps the stored catalog', async () => {
    const made = await mirrored(TWO_PAGES)
    made.sandbox.service.addTicket()
    made.sandbox.faults.set('/v1/patches', REFUSED, { after: 1 })
    const before = made.store.snapshots.readSnapshot('catalog')
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_auth' })
    expect(asked(made).filter((path) => path === '/v1/patches after')).toHaveLength(1)
    expect(made.sandbox.requests.count()).toBeLessThanOrEqual(3 * WIDTH)
    expect(made.store.snapshots.readSnapshot('catalog')).toEqual(before)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  longTest('during a crawl stops all requests, and the next run continues from the fetched answers', async () => {
    const env = { PATCHMIRROR_UPSTREAM_CONCURRENCY: '4' }
    const made = await bench({ ...SMALL, tags: 16 }, { env })
    made.sandbox.faults.set(TAG, REFUSED, { after: 10 })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_auth' })
    const refused = made.sandbox.requests.entries.filter(({ status }) => status === 401)
    expect(refused.length).toBeLessThanOrEqual(2)
    const had = asked(made)
      .filter((path) => TAG.test(path))
      .slice(0, 10)
    made.sandbox.faults.clear()
    made.sandbox.requests.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(asked(made).filter((path) => had.includes(path))).toEqual([])
    expect(asked(made).filter((path) => TAG.test(path)).length).toBe(16 - had.length)
  })

  longTest('that upstream revoked leaves the stored catalog served', async () => {
    const made = await mirrored()
    const [tag = ''] = made.sandbox.service.ids('tags')
    made.sandbox.service.revoke(SANDBOX_KEYS.admin)
    for (let i = 0; i < 3; i++)
      expect(await made.run('catalog')).toMatchObject({ state: 'failed', code: 'upstream_auth' })
    expect(made.sandbox.requests.count()).toBeLessThanOrEqual(3 * WIDTH)
    for (const path of [`/v1/tags/${tag}`, '/v1/tags/', '/v1/me']) expect((await made.ask(path)).status).toBe(200)
  })

  longTest('without a right to one list costs that list, with that reason', async () => {
    const env = { PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys' }
    const made = await bench(SMALL, { env })
    made.sandbox.faults.set('/v1/api_keys/', { kind: 'status', status: 403 })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', code: null, facts: { forbidden: 1 } })
    const [named = ''] = lackingOf(report)
    expect(named).toMatch(/upstream\.apiKey is not allowed this by the remediation surface/)
    expect(named).toContain('/v1/api_keys/')
  })

  test('of an unknown OAuth client costs one request for a token and none for data', async () => {
    const made = await bench(SMALL, {
      envOf: (sandbox) => ({
        PATCHMIRROR_UPSTREAM_CATALOG_URL: sandbox.catalogUrl,
        PATCHMIRROR_OAUTH_CLIENT_ID: SANDBOX_CLIENT.id,
        PATCHMIRROR_OAUTH_CLIENT_SECRET: 'not-its-secret',
        PATCHMIRROR_OAUTH_AUTH_URL: sandbox.authUrl,
        PATCHMIRROR_OAUTH_AUDIENCE: sandbox.url,
      }),
    })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_auth' })
    expect(report.message).toContain('oauth.clientId')
    expect(report.message).not.toContain('not-its-secret')
    expect(asked(made, 'api')).toEqual([])
    expect(asked(made, 'identity')).toEqual(['/oauth/token'])
  })

  longTest('of the identity surface does not affect the catalog', async () => {
    const made = await bench(SMALL, {
      env: {
        PATCHMIRROR_IDENTITY_API_KEY: SANDBOX_KEYS.remediationOnly,
        PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
      },
    })
    const [users, catalog] = await Promise.all([made.run('identity'), made.run('catalog')])
    expect(users).toMatchObject({ state: 'partial', code: null })
    expect(lackingOf(users)).toEqual([
      expect.stringMatching(/identity\.apiKey is not allowed this by the identity surface/),
    ])
    expect(catalog).toMatchObject({ state: 'complete' })
  })
})

longTest('a package catalog that requires a credential ends the run with the setting that sends one', async () => {
  const closed = { ...SMALL, catalogNeedsCredential: true }
  const made = await bench(closed)
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'failed', code: 'upstream_auth', facts: { needsCredential: 1 } })
  expect(report.message).toContain('set catalog.sendCredential')
  expect(asked(made, 'catalog').length).toBeLessThanOrEqual(WIDTH)
  const sent = await bench(closed, { env: { PATCHMIRROR_CATALOG_SEND_CREDENTIAL: 'true' } })
  expect(await sent.run('catalog')).toMatchObject({ state: 'complete' })
})

longTest('a document that its host refuses twice is named, and the rest is mirrored', async () => {
  const made = await mirrored(SMALL, { PATCHMIRROR_UPSTREAM_CONCURRENCY: '2' })
  const [tag = '', other = ''] = made.sandbox.service.ids('tags')
  for (const id of [tag, other]) made.sandbox.service.rotateArtifact('tag', id, 'sbom')
  made.sandbox.faults.set(/^\/artifacts\/sbom-/, { kind: 'status', status: 403 }, { times: 2 })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null, facts: { lacking: 1 } })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const { mirror, upstream } = await compare(made, `/v1/tags/${tag}/sbom`)
  expect(mirror).toEqual(upstream)
})

const xml = (code: string): string => `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`

test.each<[string, Fault, ShapeName]>([
  ['as 403', { kind: 'status', status: 403 }, 'wire'],
  ['behind a redirect', { kind: 'status', status: 403 }, 'other'],
  ['as ExpiredRequest', { kind: 'status', status: 400, body: xml('ExpiredRequest') }, 'wire'],
  ['as ExpiredToken', { kind: 'status', status: 400, body: xml('ExpiredToken') }, 'wire'],
  ['as AccessDenied', { kind: 'status', status: 400, body: xml('AccessDenied') }, 'wire'],
  ['in JSON', { kind: 'status', status: 400, body: '{"message":"jwt expired"}' }, 'wire'],
])('an expired pre-signed URL, refused %s, is requested again once', async (_how, fault, shape) => {
  const env = { ...ALL, PATCHMIRROR_UPSTREAM_CONCURRENCY: '2' }
  const made = await bench({ ...SMALL, shape }, { env })
  const struck = made.sandbox.faults.set(/^\/artifacts\/sbom-/, fault, { times: 1 })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(struck.hits()).toBe(1)
  const sboms = asked(made).filter((path) => /^\/v1\/tags\/.*\/sbom$/.test(path))
  expect(sboms.length - new Set(sboms).size).toBe(1)
})

longTest('a URL that is already expired is not requested again without end', async () => {
  const made = await bench({ ...SMALL, urlSeconds: -10 })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null })
  const sboms = asked(made).filter((path) => /^\/v1\/tags\/.*\/sbom$/.test(path))
  expect(sboms.length).toBe(2 * new Set(sboms).size)
})

longTest('no credential ever reaches the host of the documents', async () => {
  const made = await bench()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const sent = made.sandbox.requests.entries.filter(({ host }) => host === 'artifacts')
  expect(sent.length).toBeGreaterThan(10)
  for (const { headers } of sent) {
    expect(Object.keys(headers).filter((name) => /auth|cookie|key|token/i.test(name))).toEqual([])
  }
  expect(made.sandbox.requests.count(TAG_LIST)).toBe(2) // whole, and a page of one item to learn how it goes on
})

describe('a credential that upstream returns in', () => {
  const KEY = SANDBOX_KEYS.admin
  const ONE = { images: 1, tags: 1, packages: 0, tickets: 0, avrs: 0, users: 1, subscriptions: 0 }
  const CODED = Buffer.from(`${KEY}:`).toString('base64')

  test.each([
    ['an item', /^\/v1\/me$/, { kind: 'body', body: JSON.stringify({ id: 'u1', note: KEY }) }],
    ['a list', TAG_LIST, { kind: 'body', body: JSON.stringify({ items: [{ id: 't', x: CODED }] }) }],
    ['a document', DOCUMENT, { kind: 'body', body: JSON.stringify({ spdxVersion: encodeURIComponent(CODED) }) }],
    ['an artifact answer', SBOM, { kind: 'body', body: JSON.stringify({ spdxVersion: KEY }) }],
  ] as const)('%s is not stored, and the run reports where it was', async (_, path, fault) => {
    const made = await bench(ONE)
    made.sandbox.faults.set(path, fault)
    const report = await made.run('catalog')
    expect(report.state).toBe('partial')
    const said = JSON.stringify(report)
    expect(said).toMatch(/\/v1\/[^ ]*: [^"]*upstream returned the credential/)
    expect(said).toContain('Replace the credential by a new one')
    const stored = readdirSync(made.dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    for (const secret of [KEY, CODED, encodeURIComponent(CODED)]) {
      expect(said).not.toContain(secret)
      expect(stored.filter((text) => text.includes(secret))).toEqual([])
    }
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  })

  test('records of the public feed is not stored, and the other records are', async () => {
    const made = await bench(ONE)
    const put = (id: string, details: string): void => {
      const modified = '2026-05-01T00:00:00Z'
      made.sandbox.feed.put(id, JSON.stringify({ id, modified, details }), modified)
    }
    put('LEAK-1', `key ${KEY}`)
    const first = await made.run('osv') // by the archive
    expect(first.state).toBe('partial')
    put('LEAK-2', CODED)
    put('FINE-1', 'nothing')
    const second = await made.run('osv') // one by one
    expect(JSON.stringify(second)).toMatch(/LEAK-2[^"]*upstream returned the credential/)
    expect([made.content('LEAK-1'), made.content('LEAK-2')]).toEqual([null, null])
    expect(made.content('FINE-1')).not.toBeNull()
    expect(made.store.osv.countRecords()).toBe(6)
  })
})
