import { afterEach, expect, test } from 'vitest'
import type { FilledStore } from '../../support/filled-store.ts'
import { TEST_KEY } from '../../support/keys.ts'
import { FEEDS, closeAll, serve } from '../served.ts'
import { withoutValues } from '../../../src/server/http/request-target.ts'

afterEach(closeAll)

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const fill = (store: FilledStore): void => store.publishFeeds(FEEDS)

test('an answer repeats a well-formed request id and traceparent, and no malformed one', async () => {
  const { get, fields } = await serve(fill)
  const good = { 'x-request-id': 'build-7/a', traceparent: TRACE }
  for (const path of ['/external/patch_feed', '/-/health', '/v1/none', '/nowhere']) {
    const { headers } = await get(path, good)
    expect([path, headers['x-request-id'], headers['traceparent']]).toEqual([path, 'build-7/a', TRACE])
  }
  const bad = await get('/-/health', { 'x-request-id': 'a b"<', traceparent: 'x' })
  expect([bad.headers['x-request-id'], bad.headers['traceparent']]).toEqual([undefined, undefined])
  expect(fields.filter((one) => 'requestId' in one)).toEqual([])
})

test('with log.access each answer is logged with the name of its key and without secret values', async () => {
  const env = { PATCHMIRROR_LOG_ACCESS: 'true', PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.1' }
  const { get, fields, told } = await serve(fill, { env })
  const { headers } = await get('/external/patch_feed?token=hunter2', {
    'x-forwarded-for': '192.0.2.7',
  })
  expect(headers['x-request-id']).toMatch(/^[\da-f-]{36}$/)
  await get('/v1/none', { 'x-request-id': 'mine' })
  const lines = (): object[] => fields.filter((one) => 'requestId' in one)
  await expect.poll(() => lines().length).toBe(2)
  expect(lines()).toMatchObject([
    { client: '192.0.2.7', key: null, method: 'GET', status: 200, finished: true },
    { client: '127.0.0.1', key: 'entry 1 of server.keys', requestId: 'mine', path: '/v1/none' },
  ])
  const [first] = lines() as { bytes: number }[]
  expect(first?.bytes).toBeGreaterThan(100)
  const text = JSON.stringify([fields, told])
  expect(text).not.toContain('hunter2')
  expect(text).not.toContain(TEST_KEY)
})

test('a local key in a path or parameter is not logged', () => {
  const key = `pmk_${'A-b_9'.repeat(6)}`
  expect(withoutValues(`/v1/${key}/x?after=${key}&limit=2`)).toBe('/v1/********/x?after=********&limit=2')
})

test.each([
  ['http://me:hunter2@mirror.example.com/v1/me?limit=2', 'http://********@mirror.example.com/v1/me?limit=2'],
  ['ftp://hunter2@p@h', 'ftp://********@h'],
  ['me:hunter2@h:443', '********@h:443'],
  ['http://h/a@b', 'http://h/a@b'],
  ['/a@b//c@d', '/a@b//c@d'],
])('of the target %s the log has %s', (target, logged) => {
  expect(withoutValues(target)).toBe(logged)
})
