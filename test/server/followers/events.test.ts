import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import { afterEach, describe, expect, onTestFinished, vi } from 'vitest'
import { type EventLog, createWebhookLog } from '../../../src/server/followers/event-log.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { snapshot } from '../../store/fixtures.ts'
import { type Served, type ServedOptions, FEEDS, FILLED_AT, closeAll, serve } from '../served.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

const KEY = 'Zk3v9wq7Rt5y2Lm8'
const KEYED = { Authorization: `Bearer ${KEY}` }
const WITH_KEY = { env: { PATCHMIRROR_SERVER_KEYS: KEY } }

/** An event as it came; comments and the stream's own settings are `name: null`. */
interface Got {
  name: string | null
  id: string | null
  data: string
}

interface Reader {
  response: IncomingMessage
  /** The next event with a name, or what stands at the begin. */
  next(): Promise<Got>
  /** The next comment. */
  comment(): Promise<void>
  /** Resolves when the mirror has ended the stream. */
  ended(): Promise<void>
  leave(): void
}

async function follow(
  { port, own }: Served,
  more: Record<string, string> = {},
  path = '/-/events',
  localAddress = '127.0.0.1',
): Promise<Reader> {
  const headers = { ...own, ...more }
  const to = { port, host: '127.0.0.1', localAddress, path, agent: false }
  const sent: ClientRequest = request({ ...to, headers })
  sent.end()
  onTestFinished(() => void sent.destroy())
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  const blocks = blocksOf(response)
  const take = async (wanted: (block: string) => boolean): Promise<string> => {
    for (;;) {
      const { value, done } = await blocks.next()
      if (done === true) throw new Error('the stream ended')
      if (wanted(value)) return value
    }
  }
  return {
    response,
    ended: async () => {
      while ((await blocks.next()).done !== true);
    },
    next: async () => parse(await take((block) => !block.startsWith(':'))),
    comment: async () => {
      await take((block) => block.startsWith(':'))
    },
    leave: () => void sent.destroy(),
  }
}

async function* blocksOf(response: IncomingMessage): AsyncGenerator<string, undefined> {
  let text = ''
  for await (const chunk of response) {
    text += String(chunk)
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      yield text.slice(0, end)
      text = text.slice(end + 2)
    }
  }
  return undefined
}

function parse(block: string): Got {
  const lines = block.split('\n')
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2))
  return {
    name: field('event')[0] ?? null,
    id: field('id')[0] ?? null,
    data: field('data').join('\n'),
  }
}

const dataOf = ({ data }: Got) => JSON.parse(data) as Record<string, unknown>

/** A reader that takes the begin of its stream, and nothing more. */
async function stopped({ port }: Served, from = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  socket.write('GET /-/events HTTP/1.1\r\nHost: m\r\n\r\n')
  await once(socket, 'data')
  return socket.pause()
}

function publish({ store, server }: Served, records: Record<string, string>, n: number): void {
  store.publishOsv(records, FILLED_AT + n * 1000)
  server.snapshotChanged()
}

const start = (options: ServedOptions = {}) => serve((store) => store.publishOsv({ a: '1' }), options)

describe('/-/events', () => {
  test('sends each new snapshot with its changes, after it can be read', async () => {
    const served = await start()
    const reader = await follow(served)
    expect(reader.response.statusCode).toBe(200)
    expect(reader.response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    expect(await reader.next()).toEqual({ name: null, id: '1.0', data: '' })
    publish(served, { a: '2', b: '1' }, 1)
    const event = await reader.next()
    const readable = await served.get('/external/osv/all.json')
    expect([event.name, event.id]).toEqual(['snapshot', '2.0'])
    expect(dataOf(event)).toMatchObject({
      source: 'osv',
      snapshot: readable.headers['x-mirror-snapshot'],
      sequence: 2,
      asOf: new Date(FILLED_AT + 1000).toISOString(),
      counts: { added: 1, changed: 1, removed: 0 },
      complete: true,
      changes: [
        { id: 'a', change: 'changed' },
        { id: 'b', change: 'added' },
      ],
      more: false,
    })
  })

  test('names the first hundred changes, and says when there are more', async () => {
    const served = await start()
    const reader = await follow(served)
    await reader.next()
    publish(served, Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`n${i}`, '1'])), 1)
    const { changes, more, counts } = dataOf(await reader.next())
    expect([(changes as unknown[]).length, more, counts]).toEqual([100, true, { added: 101, changed: 0, removed: 1 }])
  })

  bothTest('resumes after the last event that a client received', async () => {
    const served = await start()
    const count = LONG ? 120 : 20
    for (let n = 1; n <= count; n++) served.store.publishOsv({ a: `v${n}` }, FILLED_AT + n * 1000)
    served.server.snapshotChanged()
    const reader = await follow(served, { 'Last-Event-ID': '3' })
    for (let id = 4; id <= count + 1; id++) expect((await reader.next()).id).toBe(`${id}.0`)
  })

  longTest('sends a reset when events were deleted since, or the id is of another mirror', async () => {
    const served = await start()
    for (let n = 1; n <= 5; n++) publish(served, { a: `v${n}` }, n)
    const store = openWrites(served.dir)
    store.changes.forgetChanges('osv', FILLED_AT + 3000)
    store.close()
    served.server.snapshotChanged()
    for (const id of ['1', '2.0', '99', 'nonsense', '5.7', '']) {
      const reader = await follow(served, { 'Last-Event-ID': id })
      const first = await reader.next()
      expect([id, first.name, first.id]).toEqual([id, id === '' ? null : 'reset', '6.0'])
      reader.leave()
    }
    const reader = await follow(served, { 'Last-Event-ID': '5' })
    await reader.next().then(({ id }) => expect(id).toBe('6.0'))
  })

  test('sends private sources and webhooks only to clients with a key', async () => {
    const served = await serve((store) => store.publishFeeds(FEEDS), {
      ...WITH_KEY,
      webhookLog: webhooksOf(['{"one":\r\n1}', '{"two":2}']),
    })
    const open = await follow(served)
    const keyed = await follow(served, { ...KEYED, 'Last-Event-ID': '1.0' })
    expect((await open.next()).id).toBe('1')
    expect(await keyed.next()).toEqual({ name: 'webhook', id: '1.1', data: '{"one":\n1}' })
    expect((await keyed.next()).id).toBe('1.2')
    const store = openWrites(served.dir)
    await store.transaction(() => {
      store.snapshots.replaceSnapshot(snapshot({ source: 'catalog', id: 'c1' }))
      return Promise.resolve({ commit: true })
    })
    store.close()
    served.store.publishFeeds({ ...FEEDS, '/external/cve_feed': '[]' }, FILLED_AT + 1000)
    served.server.snapshotChanged()
    expect(dataOf(await keyed.next())).toMatchObject({ source: 'catalog', snapshot: 'c1' })
    expect((await keyed.next()).id).toBe('3.2')
    const seen = await open.next()
    expect([seen.id, dataOf(seen)['source']]).toEqual(['3', 'feeds'])
    const wrong = { Authorization: 'Bearer wrong' }
    expect((await served.get('/-/events', wrong)).status).toBe(401)
    expect((await served.get('/-/events?source=catalog')).status).toBe(401)
    expect((await served.get('/-/events?source=none')).status).toBe(400)
  })

  test('sends events of one source alone when the request names it', async () => {
    const served = await start()
    const reader = await follow(served, {}, '/-/events?source=feeds')
    await reader.next()
    publish(served, { a: '2' }, 1)
    served.store.publishFeeds(FEEDS, FILLED_AT + 2000)
    served.server.snapshotChanged()
    expect(dataOf(await reader.next())).toMatchObject({ source: 'feeds', complete: false })
  })

  test('ends when the key that opened it is revoked', async () => {
    const served = await start({ eventBounds: { heartbeatMs: 10 } })
    const keys = openWrites(served.dir)
    const { id, key } = keys.keys.createKey('ci', FILLED_AT)
    const reader = await follow(served, { Authorization: `Bearer ${key}` })
    await reader.comment()
    keys.keys.revokeKey(id, FILLED_AT)
    keys.close()
    await reader.ended()
    expect((await served.get('/-/events', { Authorization: `Bearer ${key}` })).status).toBe(401)
  })

  test('sends heartbeats, answers HEAD and refuses writing methods', async () => {
    const served = await start({ eventBounds: { heartbeatMs: 10 } })
    const reader = await follow(served)
    await reader.comment()
    await reader.comment()
    const head = await served.head('/-/events')
    expect([head.status, head.headers['content-type'], head.body.length]).toEqual([...[200, 'text/event-stream', 0]])
    expect((await served.get('/-/events', {}, 'POST')).status).toBe(405)
  })

  test('gives a client with a key the place of the oldest client without one', async () => {
    const served = await serve((store) => store.publishFeeds(FEEDS), {
      ...WITH_KEY,
      closeGraceMs: 100,
      eventBounds: { maxListeners: 2 },
    })
    const first = await follow(served)
    const second = await follow(served)
    const out = first.ended().catch(() => undefined)
    const keyed = [await follow(served, KEYED), await follow(served, KEYED)]
    await out
    await second.ended().catch(() => undefined)
    expect(keyed.map(({ response }) => response.statusCode)).toEqual([200, 200])
    expect((await follow(served, KEYED)).response.statusCode).toBe(503)
    expect((await follow(served)).response.statusCode).toBe(503)
  })

  test('accepts a bounded number of readers', async () => {
    // A reader that has left may have closed its side only: a heartbeat that cannot be sent shows it.
    const served = await start({
      closeGraceMs: 100,
      eventBounds: { heartbeatMs: 10, maxListeners: 2 },
    })
    const first = await follow(served)
    await follow(served)
    const refused = await served.get('/-/events')
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '30'])
    first.leave()
    await expect.poll(async () => (await served.head('/-/events')).status).toBe(200)
  })

  longTest('disconnects a reader that reads nothing, and buffers nothing for it', async () => {
    const texts = Array.from({ length: 300 }, (_, n) => `${n} ${'long'.repeat(10_000)}`)
    const served = await serve((store) => store.publishFeeds(FEEDS), {
      ...WITH_KEY,
      webhookLog: webhooksOf(texts),
      closeGraceMs: 100,
      eventBounds: { heartbeatMs: 500, maxListeners: 2 },
    })
    const socket = connect({ port: served.port, host: '127.0.0.1' })
    const closed = once(socket, 'close')
    socket.on('error', () => undefined)
    socket.pause()
    socket.write(
      `GET /-/events HTTP/1.1\r\nHost: m\r\nAuthorization: ${KEYED.Authorization}\r\nLast-Event-ID: 1.0\r\n\r\n`,
    )
    const reader = await follow(served, { ...KEYED, 'Last-Event-ID': '1.0' })
    for (let id = 1; id <= texts.length; id++) expect((await reader.next()).id).toBe(`1.${id}`)
    const free = async () => (await served.head('/-/events')).status
    await expect.poll(free).toBe(200)
    socket.resume() // what lay in the kernel's buffers, and then the end of it
    await closed
    expect(socket.bytesRead).toBeLessThan(texts.join('').length)
  })

  longTest('gives readers that read nothing no place for good, however little is sent', async () => {
    const bounds = { heartbeatMs: 400, maxListeners: 3 }
    const served = await start({ ...WITH_KEY, closeGraceMs: 100, eventBounds: bounds })
    const silent = [await stopped(served), await stopped(served)]
    const reader = await stopped(served)
    let seen = ''
    reader.on('data', (chunk: Buffer) => (seen = seen.slice(-9999) + chunk.toString())).resume()
    expect((await served.get('/-/events')).status).toBe(503)
    await expect.poll(async () => (await served.head('/-/events')).status).toBe(200)
    for (const socket of silent) socket.resume()
    await Promise.any(silent.map((socket) => once(socket, 'close')))
    publish(served, { a: '2' }, 1)
    await expect.poll(() => seen).toContain('event: snapshot')
    expect(reader.bytesRead).toBeGreaterThan(2 ** 20)
  })

  longTest('gives the places of addresses that read nothing to readers, and not back to those addresses', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const bounds = { heartbeatMs: 3_600_000, maxListeners: 3 }
    const served = await start({ ...WITH_KEY, closeGraceMs: 100, eventBounds: bounds })
    const silent = ['127.0.0.2', '127.0.0.3', '127.0.0.4']
    for (const address of silent) await stopped(served, address)
    const from = async (address: string): Promise<number> =>
      (await follow(served, {}, '/-/events', address)).response.statusCode ?? 0
    const later = async (): Promise<number> => {
      const status = await from('127.0.0.5')
      vi.advanceTimersByTime(1000)
      return status
    }
    await expect.poll(later).toBe(200)
    for (const address of silent) expect(await from(address)).toBe(503)
    expect([await from('127.0.0.6'), await from('127.0.0.7')]).toEqual([200, 200])
    expect(await from('127.0.0.8')).toBe(503)
  })

  test('takes the place of the address that has most readers for one that has fewer', async () => {
    const served = await start({
      ...WITH_KEY,
      closeGraceMs: 100,
      eventBounds: { maxListeners: 3 },
    })
    const first = await stopped(served, '127.0.0.2')
    await stopped(served, '127.0.0.2')
    await stopped(served, '127.0.0.2')
    expect((await follow(served)).response.statusCode).toBe(200)
    first.resume()
    await once(first, 'close')
    expect((await served.get('/-/events')).status).toBe(503) // one of two would be no fairer
  })

  test('ends cleanly when the mirror shuts down', async () => {
    const served = await start()
    const reader = await follow(served)
    await reader.next()
    await served.server.close()
    await reader.ended()
    expect(reader.response.complete).toBe(true)
  })
})

test.each([
  ['\u{feff}{"one":1}', { one: 1 }],
  ['', ''],
  ['not "JSON"\nbut text', 'not "JSON"\nbut text'],
])('a received event is sent as JSON, whatever its body was: %j', (text, shown) => {
  const body = Buffer.from(text)
  const event = { id: 1, kind: 'webhook' as const, webhookId: 'msg_1', createdAt: 0, body }
  const log = createWebhookLog({
    nextDueAt: () => null,
    listTargets: () => [],
    lastEvent: () => 1,
    countEvents: () => 1,
    listEvents: () => [event],
  })
  const [told] = log.list(0, 1)
  expect(JSON.parse(told?.data?.() ?? '')).toMatchObject({ webhookId: 'msg_1', event: shown })
})

function webhooksOf(texts: string[]): EventLog {
  const events = texts.map((text, at) => {
    return { id: at + 1, name: 'webhook' as const, source: null, data: () => text }
  })
  return {
    last: () => texts.length,
    count: (after) => texts.length - after,
    list: (after, limit) => events.slice(after, after + limit),
  }
}

test('who makes something of what is served is told of a new snapshot, and of other results of signatures', async () => {
  const told: number[] = []
  const { dir, server } = await serve((store) => store.publishFeeds(FEEDS), { onServed: (log) => told.push(log) })
  const look = () => server.snapshotChanged()
  look()
  expect(told).toEqual([1])
  const writes = openWrites(dir)
  onTestFinished(() => writes.close())
  const result = { path: '/v1/tags/t/vex', answer: '', basis: '', signer: null, reason: null, subject: null }
  for (const state of ['verified', 'failed'] as const) {
    writes.catalog.putSignature({ ...result, state, isEnforced: true }, false)
    look()
    look()
  }
  expect(told).toEqual([1, 1, 1])
})
