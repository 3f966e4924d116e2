import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import type { InboxThread } from '../../../src/webhooks/inbox/thread.ts'
import { createReport } from '../../../src/webhooks/receive/report.ts'
import { NOW, openInboxHere, scratch, startInbox } from '../inbox/inboxes.ts'
import { deliveryOf, receiving, send } from './receivers.ts'
import { EVENT, RAW_SECRET, SECRET, signed } from '../signing.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const REFUSED = '{"error":"unauthorized","message":"the delivery could not be authenticated"}'

/** Sends these bytes and returns everything until the other side closes or `until` is there. */
function exchange(port: number, bytes: string, until: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (until.test(text)) socket.destroy()
    })
    socket.once('error', reject).once('close', () => resolve(text))
  })
}

describe('a delivery', () => {
  test('that is new is a 202 and stored with all its fields', async () => {
    const { deliver, inbox, outcomes, stored } = await receiving()
    expect(await deliver({ dialect: 'vendor' })).toMatchObject({ status: 202, body: '' })
    const [row] = await inbox.pending(NOW, 9)
    expect(row).toMatchObject({
      endpoint: 'default',
      webhookId: 'evt_1',
      state: 'pending',
      type: EVENT.type,
      dialect: 'vendor',
      secret: 'settings-1',
      receivedAt: NOW,
      storedAt: NOW,
      attempts: 0,
      target: { repository: 'library/python', tag: '3.12-slim', arch: 'amd64' },
    })
    expect((await inbox.call('read', 1))?.body).toEqual(new Uint8Array(Buffer.from(JSON.stringify(EVENT))))
    expect(outcomes).toEqual([['new', '']])
    expect(stored()).toBe(1)
  })

  test('that is a duplicate is a 200, and starts no second refresh', async () => {
    const { deliver, inbox, clock, stored } = await receiving()
    await deliver()
    clock.now += 60_000
    const again = await deliver({ timestamp: clock.now / 1000 })
    expect(again.status).toBe(200)
    expect(await inbox.counts()).toMatchObject({ pending: 1 })
    expect(stored()).toBe(1)
  })

  test('is counted as new at each endpoint', async () => {
    const { port, deliver, inbox } = await receiving()
    await deliver()
    const there = await send(port, { ...deliveryOf(), path: '/-/webhooks/staging?x=1' })
    expect(there.status).toBe(202)
    expect((await inbox.pending(NOW, 9)).map(({ endpoint }) => endpoint)).toEqual(['default', 'staging'])
  })

  test('of a type that is not enabled is a 200, and recorded as ignored', async () => {
    const { deliver, inbox, stored } = await receiving()
    const body = JSON.stringify({ ...EVENT, type: 'io.service.cr.image.deleted.v1' })
    expect((await deliver({ body })).status).toBe(200)
    expect(await inbox.counts()).toMatchObject({ ignored: 1, pending: 0 })
    expect(stored()).toBe(0)
  })

  test('of a later version or an unknown shape requests a refresh without a target', async () => {
    const { deliver, inbox } = await receiving()
    const body = JSON.stringify({ type: 'io.service.cr.image.created.v9', what: ['else'] })
    expect((await deliver({ body })).status).toBe(202)
    expect(await inbox.pending(NOW, 9)).toMatchObject([{ target: null }])
  })

  test.each([
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['not JSON', '{"type":'],
    ['empty', ''],
    ['not an object', '[1]'],
    ['without a type', '{"id":"x"}'],
    ['of another envelope', '{"event_type":"tag.created","payload":{"tag_id":7}}'],
  ])('that is authentic but %s is a 202, and requests one refresh without a target', async (_, body) => {
    const { deliver, inbox, outcomes, stored } = await receiving()
    expect(await deliver({ body })).toMatchObject({ status: 202, body: '' })
    expect(await inbox.pending(NOW, 9)).toMatchObject([{ target: null, state: 'pending' }])
    const row = await inbox.call('read', 1)
    expect(Buffer.from(row?.body ?? [])).toEqual(Buffer.from(body))
    expect((await deliver({ body })).status).toBe(200)
    expect(outcomes).toEqual([
      ['new', ''],
      ['duplicate', ''],
    ])
    expect([stored(), (await inbox.counts()).pending]).toEqual([1, 1])
  })

  test('that names several images has all of them as targets', async () => {
    const { deliver, inbox } = await receiving()
    const data = { image_repo: 'library/node', image_tag: '22' }
    const body = JSON.stringify([EVENT, { ...EVENT, id: 'evt_2', subject: null, data }])
    expect((await deliver({ body })).status).toBe(202)
    expect(await inbox.pending(NOW, 9)).toMatchObject([
      { target: { tag: '3.12-slim', others: [{ repository: 'library/node', tag: '22' }] } },
    ])
  })

  test('that is compressed is accepted as it was signed, and a 415 when its signature does not fit', async () => {
    const { deliver, inbox, port, outcomes } = await receiving()
    const body = gzipSync(JSON.stringify(EVENT))
    const sent = await deliver({ body }, { 'content-encoding': 'gzip' })
    expect([sent.status, (await inbox.pending(NOW, 9))[0]?.target]).toEqual([202, null])
    const plain = deliveryOf({ id: 'evt_2' }, { 'content-encoding': 'gzip' })
    expect((await send(port, { ...plain, body })).status).toBe(415)
    expect(outcomes.at(-1)).toEqual(['refused', 'encoding'])
  })

  test('is accepted with any content type or none, and with the identity encoding', async () => {
    const { deliver } = await receiving()
    const types = ['application/cloudevents+json', 'text/plain', 'application/x-www-form-urlencoded', '???']
    for (const [at, type] of types.entries())
      expect((await deliver({ id: `evt_${at}` }, { 'content-type': type })).status).toBe(202)
    expect((await deliver({ id: 'none' }, { 'content-encoding': 'identity' })).status).toBe(202)
  })

  longTest('that is sent two hundred times at once is one row: one 202, the others 200', async () => {
    const { deliver, inbox } = await receiving()
    const all = await Promise.all(Array.from({ length: 200 }, () => deliver()))
    const statuses = all.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array<number>(199).fill(200), 202])
    expect(await inbox.counts()).toMatchObject({ pending: 1 })
  })
})

describe('an authentication failure', () => {
  test('is the same 401 for every reason, and its id is not recorded', async () => {
    const { port, inbox, outcomes, told, deliver } = await receiving()
    const good = deliveryOf()
    const without = (name: string): Record<string, string> =>
      Object.fromEntries(Object.entries(signed()).filter(([key]) => key !== name))
    const failures = [
      { ...good, body: `${String(good.body)} ` },
      { ...good, headers: without('webhook-id') },
      { ...good, headers: without('webhook-timestamp') },
      { ...good, headers: without('webhook-signature') },
      { ...good, headers: { ...signed(), 'webhook-id': ['evt_1', 'evt_1'] } },
      { ...good, headers: {} },
      deliveryOf({ timestamp: NOW / 1000 - 301 }),
      deliveryOf({ timestamp: NOW / 1000 + 301 }),
      deliveryOf({ id: 'evt.1' }),
      deliveryOf({ secret: `${SECRET.slice(0, -3)}8=` }),
      deliveryOf({ body: 'no JSON at all', secret: 'another secret than yours' }),
    ]
    for (const failure of failures) {
      const reply = await send(port, failure)
      expect([reply.status, reply.body]).toEqual([401, REFUSED])
      expect(reply.headers['retry-after']).toBeUndefined()
    }
    expect(await inbox.counts()).toMatchObject({ pending: 0, dead: 0, ignored: 0 })
    expect(outcomes.map(([, reason]) => reason)).toEqual([
      ...['signature', 'header_missing', 'header_missing', 'header_missing', 'header_repeated'],
      ...['header_missing', 'too_old', 'too_new', 'header_id', 'signature', 'signature'],
    ])
    expect(told.map(({ fields }) => fields['reason'])).toEqual([
      ...['signature', 'header_missing', 'header_repeated', 'too_old', 'too_new', 'header_id'],
    ])
    expect((await deliver()).status).toBe(202)
  })

  test.each([800, 1_100, 2_100])(
    'is caused by a second value behind %i header lines, however many Node.js keeps',
    async (count) => {
      const { port, inbox, outcomes } = await receiving()
      const { headers, body = '' } = deliveryOf()
      const sent = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${String(value)}`)
      const filler = Array.from({ length: count }, () => 'a:')
      const length = `Content-Length: ${Buffer.byteLength(body)}`
      const all = ['POST /-/webhooks HTTP/1.1', 'Host: x', length, ...sent, ...filler, 'webhook-id: other']
      const answer = await exchange(port, `${all.join('\r\n')}\r\n\r\n${body.toString()}`, /}$/)
      // Newer releases of Node.js refuse so many lines by themselves.
      const isRefusedByNode = answer.startsWith('HTTP/1.1 431 ')
      if (!isRefusedByNode) expect(answer).toMatch(/^HTTP\/1.1 401 /)
      expect(outcomes).toEqual(isRefusedByNode ? [] : [['unauthorized', 'header_repeated']])
      expect(await inbox.counts()).toMatchObject({ pending: 0 })
    },
  )

  test('is logged once in ten seconds for each reason, then with the number of failures', async () => {
    const { port, told, clock } = await receiving()
    const bad = { ...deliveryOf(), body: 'x' }
    for (let i = 0; i < 50; i++) await send(port, bad)
    expect(told).toHaveLength(1)
    clock.now += 10_000
    await send(port, bad)
    expect(told.map(({ fields }) => fields['alike'])).toEqual([undefined, 49])
  })

  bothTest('does not shut out other senders, however many there are', async () => {
    const { port, deliver } = await receiving()
    const bad = { ...deliveryOf(), body: 'x' }
    const count = LONG ? 500 : 100
    const all = await Promise.all([
      ...Array.from({ length: count }, () => send(port, bad)),
      deliver({ id: 'good', secret: RAW_SECRET, dialect: 'whole-base64' }),
    ])
    expect(all.filter(({ status }) => status === 401)).toHaveLength(count)
    expect(all.at(-1)?.status).toBe(202)
  })
})

describe('a request that is no valid delivery', () => {
  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'])('by %s is 405', async (method) => {
    const { port } = await receiving()
    const reply = await send(port, { ...deliveryOf(), method })
    expect(reply.status).toBe(405)
    expect(reply.headers.allow).toBe('POST, OPTIONS')
  })

  test('is a 413 when its length is too large, as announced or as received', async () => {
    const { port, deliver, outcomes } = await receiving()
    const head = 'POST /-/webhooks HTTP/1.1\r\nHost: x\r\n'
    const announced = await exchange(port, `${head}Content-Length: 4097\r\n\r\n`, /bytes"}$/)
    expect(announced).toMatch(/^HTTP\/1.1 413 /)
    const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`
    const chunk = `800\r\n${'x'.repeat(2048)}\r\n`
    expect(await exchange(port, chunked + chunk.repeat(3), /bytes"}$/)).toMatch(/^HTTP\/1.1 413 /)
    expect((await deliver({ body: JSON.stringify(EVENT).padEnd(4096) })).status).toBe(202)
    expect(outcomes.map(([, reason]) => reason)).toEqual(['too_large', 'too_large', ''])
  })

  test('is a 413 in thousands of tiny chunks, and accepted in hundreds of them', async () => {
    const { port, outcomes } = await receiving()
    const crumbs = (text: string): string => Array.from(text, (one) => `1\r\n${one}\r\n`).join('')
    const head = 'POST /-/webhooks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n'
    expect(await exchange(port, `${head}\r\n${crumbs('x'.repeat(4000))}`, /pieces"}$/)).toMatch(/^HTTP\/1.1 413 /)
    const { headers, body = '' } = deliveryOf()
    const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${String(value)}\r\n`)
    const sound = `${head}${lines.join('')}\r\n${crumbs(body.toString())}0\r\n\r\n`
    expect(await exchange(port, sound, /\r\n\r\n/)).toMatch(/^HTTP\/1.1 202 /)
    expect(outcomes).toEqual([
      ['refused', 'too_many_pieces'],
      ['new', ''],
    ])
  })

  test.each(['gzip', 'deflate', 'br', 'identity, gzip'])(
    'is 415 when it is encoded after it was signed: %s',
    async (coding) => {
      const { port } = await receiving()
      const { headers = {} } = deliveryOf({}, { 'content-encoding': coding })
      expect((await send(port, { headers, body: gzipSync('{}') })).status).toBe(415)
    },
  )

  test('is passed to the other routes when its path is no endpoint', async () => {
    const { port } = await receiving()
    for (const path of ['/-/webhooks/', '/-/Webhooks', '/', '/-/webhooks/other'])
      expect((await send(port, { ...deliveryOf(), path })).status).toBe(404)
  })

  test('is ended when it does not end in time', async () => {
    const { port, outcomes } = await receiving({ bodyTimeOf: () => 50 })
    const head = 'POST /-/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{'
    expect(await exchange(port, head, /in time"}$/)).toMatch(/^HTTP\/1.1 408 /)
    expect(outcomes).toEqual([['refused', 'too_slow']])
  })

  test('is not counted as a failure when it breaks off', async () => {
    const { port, outcomes, deliver } = await receiving()
    const head = 'POST /-/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{'
    const socket = connect(port, '127.0.0.1', () => socket.write(head, () => socket.destroy()))
    await expect.poll(() => outcomes).toEqual([['gone', 'gone']])
    expect((await deliver()).status).toBe(202)
  })
})

test('the slowest deliveries are ended when bodies fill the memory', async () => {
  const { port, deliver } = await receiving({ bodyTimeOf: () => 20_000 })
  const head = 'POST /-/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 4096\r\n\r\n'
  const slow = Array.from({ length: 70 }, () => exchange(port, head + 'x'.repeat(4095), /on their way"}$/))
  const crowded = await Promise.any(slow)
  expect(crowded).toMatch(/^HTTP\/1.1 503 /)
  expect(crowded).toMatch(/Retry-After: \d+/)
  expect((await deliver()).status).toBe(202)
})

describe('a delivery is a 503 with Retry-After', () => {
  const unavailable = (reply: { status: number; headers: Record<string, unknown> }): void => {
    expect(reply.status).toBe(503)
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
  }

  test('without a secret', async () => {
    const { deliver, outcomes } = await receiving({ isSetUp: () => false })
    unavailable(await deliver())
    unavailable(await deliver({ secret: '' }))
    expect(outcomes).toEqual(Array(2).fill(['unavailable', 'no_secret']))
  })

  test('while the inbox cannot store, and a 202 when it can again', async () => {
    const state = { failing: true }
    const receive: InboxThread['receive'] = (delivery) =>
      state.failing ? Promise.reject(new Error('the disk is full')) : real.receive(delivery)
    const { deliver, inbox: real, outcomes, told } = await receiving({ inbox: { receive } })
    unavailable(await deliver())
    unavailable(await deliver({ body: 'authentic, but not JSON' }))
    expect(await real.counts()).toMatchObject({ pending: 0, dead: 0 })
    expect(told.map(({ fields }) => fields['detail'])).toEqual(['the disk is full'])
    state.failing = false
    expect((await deliver()).status).toBe(202)
    expect(outcomes.map(([, reason]) => reason)).toEqual(['inbox', 'inbox', ''])
  })

  test('while the inbox thread is not running', async () => {
    const { deliver, inbox } = await receiving({}, await startInbox(scratch()))
    const dying = (inbox.call as (name: string) => Promise<unknown>)('no such operation')
    await expect(dying).rejects.toThrow()
    unavailable(await deliver())
  })

  test('while too many are pending, but a 200 for a duplicate, and a 202 when fewer are pending', async () => {
    const two = openInboxHere(scratch(), { maxPending: 2 })
    const { deliver, inbox, outcomes, told, stored } = await receiving({}, two)
    for (const id of ['evt_1', 'evt_2']) expect((await deliver({ id })).status).toBe(202)
    unavailable(await deliver({ id: 'evt_3' }))
    unavailable(await deliver({ id: 'evt_4', body: 'authentic, but not JSON' }))
    expect((await deliver({ id: 'evt_2' })).status).toBe(200)
    expect(outcomes.slice(2)).toEqual([
      ['unavailable', 'full'],
      ['unavailable', 'full'],
      ['duplicate', ''],
    ])
    expect(told[0]?.fields['detail']).toContain('"patchmirror webhooks inbox" shows why they wait')
    expect(await inbox.counts()).toMatchObject({ pending: 2, dead: 0 })
    await inbox.settle([{ id: 1, state: 'done' }])
    expect((await deliver({ id: 'evt_3' })).status).toBe(202)
    unavailable(await deliver({ id: 'evt_4' }))
    expect(stored()).toBe(3)
  })

  test('after the mirror began to shut down', async () => {
    const { deliver, close, inbox } = await receiving()
    close()
    unavailable(await deliver())
    expect(await inbox.counts()).toMatchObject({ pending: 0 })
  })
})

describe('the handshake of CloudEvents', () => {
  const ask = (port: number, headers: Record<string, string | string[]>) => send(port, { method: 'OPTIONS', headers })

  test('allows a sender that is allow-listed', async () => {
    const { port } = await receiving()
    const reply = await ask(port, {
      'WebHook-Request-Origin': 'Events.Example.com',
      'WebHook-Request-Rate': '120',
    })
    expect(reply.status).toBe(200)
    expect(reply.headers).toMatchObject({
      'webhook-allowed-origin': 'events.example.com',
      'webhook-allowed-rate': '*',
      allow: 'POST, OPTIONS',
    })
  })

  test('allows no other sender, and makes no callback', async () => {
    const { port } = await receiving()
    const callback = await receiving()
    for (const origin of ['evil.example.com', '*', ['events.example.com', 'evil.example.com']]) {
      const reply = await ask(port, {
        'WebHook-Request-Origin': origin,
        'WebHook-Request-Callback': `http://127.0.0.1:${callback.port}/-/webhooks`,
      })
      expect([reply.status, reply.headers['webhook-allowed-origin']]).toEqual([200, undefined])
    }
    expect((await ask(port, {})).headers['webhook-allowed-origin']).toBeUndefined()
    expect(callback.outcomes).toEqual([])
  })
})

test('the report dates the newest of what was accepted and refused last, also where the clock was set back', async () => {
  const clock = { now: NOW }
  const report = createReport({
    endpoints: [],
    secrets: { active: () => [], fault: () => null },
    inbox: openInboxHere(scratch()),
    now: () => clock.now,
    fault: { state: () => null },
  })
  const dates = async (): Promise<[refused: number, received: number]> => {
    const { lastRefusedAt, lastReceivedAt } = await report.make()
    return [Date.parse(lastRefusedAt ?? ''), Date.parse(lastReceivedAt ?? '')]
  }
  report.countWebhook('unauthorized', 'signature')
  clock.now -= 3_600_000
  report.countWebhook('new', '')
  const [refused, received] = await dates()
  expect(refused).toBeLessThanOrEqual(received)
  clock.now -= 3_600_000
  report.countWebhook('unauthorized', 'signature')
  const [again, before] = await dates()
  expect(again).toBeGreaterThan(before)
})
