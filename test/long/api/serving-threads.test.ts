import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { createServer, type Socket, connect } from 'node:net'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import type { ThreadAnswers } from '../../../src/api/serving/shared.ts'
import { createMetrics } from '../../../src/daemon/metrics/metrics.ts'
import { TEST_KEY } from '../../support/keys.ts'
import { longTest } from '../../support/tables.ts'
import { startDaemon, seconds } from '../../webhooks/daemons.ts'
import { deliveryOf, send } from '../../webhooks/receive/receivers.ts'
import { FEEDS, FILLED_AT, type Served, type ServedOptions, closeAll, serve } from '../../api/served.ts'

afterEach(closeAll)

const RECORDS = { one: '{"id":"one"}', two: `{"id":"two", "long":"${'x'.repeat(3000)}"}` }
/** More than sockets buffer, in the archive as well. */
const BIG = randomBytes(8_000_000)
const ONE = '/external/osv/one.json'
/** So many connections that each of four threads has some. */
const MANY = 48

/** A server with four serving threads. */
function start(env: Record<string, string> = {}, options: ServedOptions = {}, more = {}): Promise<Served> {
  const fill: Parameters<typeof serve>[0] = (store) => {
    store.publishOsv({ ...RECORDS, ...more })
    store.publishFeeds(FEEDS)
  }
  return serve(fill, { ...options, env: { PATCHMIRROR_SERVER_THREADS: '4', ...env } })
}

interface Dialled {
  readonly socket: Socket
  /** Sends this, and returns the next response. */
  readonly ask: (text: string) => Promise<{ head: string; body: string }>
  readonly next: () => Promise<{ head: string; body: string }>
}

/** Asks for an archive that is more than sockets buffer, and stops reading once some of it has come. */
async function stopped(port: number, more = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  socket.write(get('/external/osv/all.zip', more))
  await once(socket, 'data')
  return socket.pause()
}

/** A connection whose responses are read one at a time; `from`: the client's address. */
async function dial(port: number, from = '127.0.0.1'): Promise<Dialled> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  let held = Buffer.alloc(0)
  let wake = (): void => undefined
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    wake()
  })
  socket.on('close', () => wake())
  const next: Dialled['next'] = async () => {
    for (;;) {
      const end = held.indexOf('\r\n\r\n')
      const head = end < 0 ? '' : held.toString('latin1', 0, end)
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (end >= 0 && held.length >= end + 4 + length) {
        const body = held.toString('latin1', end + 4, end + 4 + length)
        held = held.subarray(end + 4 + length)
        return { head, body }
      }
      if (socket.closed) throw new Error('the connection was closed')
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  const ask = (text: string) => {
    socket.write(text)
    return next()
  }
  return { socket, next, ask }
}

const dialMany = (port: number, from?: string): Promise<Dialled[]> =>
  Promise.all(Array.from({ length: MANY }, () => dial(port, from)))

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: m\r\n${more}\r\n`
const undated = (head: string): string => head.replace(/Date: .*/, 'Date: …')

/** Metrics, and what the other threads have counted. */
function counting() {
  const others: ThreadAnswers[] = []
  const page = createMetrics()
  const addThread: typeof page.addThread = (thread) => {
    others.push(thread)
    page.addThread(thread)
  }
  return { metrics: { ...page, addThread }, counts: () => others.map((one) => one.totals().count) }
}

test('all serving threads give the bytes that the server gives, and their answers are counted', async () => {
  const { metrics, counts } = counting()
  const { port } = await start({}, { metrics })
  const asked = [ONE, '/external/osv/two.json'].flatMap((path) => [
    { path, coding: '' },
    { path, coding: 'Accept-Encoding: gzip\r\n' },
  ])
  const slow = await dial(port)
  for (const connection of await dialMany(port)) {
    for (const { path, coding } of asked) {
      const fast = await connection.ask(get(path, coding))
      const other = await slow.ask(get(path, `${coding}X-Other: 1\r\n`))
      expect(undated(fast.head)).toBe(undated(other.head))
      expect(fast.body).toBe(other.body)
    }
  }
  expect(counts().every((count) => count > 0)).toBe(true)
  const page = await (await dial(port)).ask(get('/-/metrics', `Authorization: Bearer ${TEST_KEY}\r\n`))
  const all = 2 * MANY * asked.length
  expect(page.body).toContain(`patchmirror_http_requests_total{surface="public",code="200"} ${all}`)
  const each = [...page.body.matchAll(/^patchmirror_serving_thread_(\w+)\{thread="(\d)"\} (\d+)$/gm)]
  expect(each.map(([, name, thread, value]) => [name, thread, value])).toEqual([
    ...counts().map((_, i) => ['up', String(i + 2), '1']),
    ...counts().map((count, i) => ['answers_total', String(i + 2), String(count)]),
  ])
  expect(page.body).toMatch(new RegExp(`^patchmirror_http_request_duration_seconds_count ${all}$`, 'm'))
  expect(page.body).toMatch(new RegExp(`^patchmirror_http_request_duration_seconds_bucket{le="\\+Inf"} ${all}$`, 'm'))
})

longTest('a connection to any thread goes on with whatever is asked on it', async () => {
  const { port, own } = await start()
  const key = Object.entries(own)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  const etag = /ETag: (.*)/.exec((await (await dial(port)).ask(get(ONE))).head)?.[1] ?? ''
  for (const { socket, ask, next } of await dialMany(port)) {
    expect((await ask(get(ONE))).body).toBe(RECORDS.one)
    socket.write(get(ONE).slice(0, 20))
    await new Promise((resolve) => setImmediate(resolve))
    expect((await ask(get(ONE).slice(20))).body).toBe(RECORDS.one)
    expect((await ask(get(ONE, `If-None-Match: ${etag}\r\n`))).head).toContain(' 304 ')
    expect((await ask(get('/v1/images/'))).head).toContain(' 401 ')
    expect((await ask(get('/-/status', key))).head).toContain(' 200 ')
    expect((await ask(get('/external/osv/none.json'))).head).toContain(' 404 ')
    expect((await ask(get('/external/patch_feed'))).body).toBe(FEEDS['/external/patch_feed'])
    expect((await ask(`POST ${ONE} HTTP/1.1\r\nHost: m\r\nContent-Length: 2\r\n\r\nab`)).head).toContain(' 405 ')
    socket.write(get(ONE) + get('/external/osv/two.json') + get('/-/health') + get(ONE))
    const bodies = [await next(), await next(), await next(), await next()].map(({ body }) => body)
    expect([bodies[0], bodies[1], bodies[3]]).toEqual([RECORDS.one, RECORDS.two, RECORDS.one])
    socket.end(get(ONE, 'Connection: close\r\n').replace('GET', 'HEAD'))
    await once(socket.resume(), 'close')
  }
})

test('what is no HTTP, and a client that closes its side first, get their answers from all threads', async () => {
  const { port, raw } = await start()
  for (let again = 0; again < MANY; again++)
    expect(await raw('NONSENSE\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 Bad Request/)
  for (const { socket } of await dialMany(port)) {
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    socket.end(get('/-/health'))
    await once(socket, 'close')
    expect(text).toContain('HTTP/1.1 200 OK')
  }
})

test('the server sees the address of the client, whichever thread accepted the connection', async () => {
  const { port, fields } = await start({ PATCHMIRROR_LOG_ACCESS: 'true' })
  for (const { ask } of await dialMany(port, '127.0.0.9')) expect((await ask(get(ONE))).body).toBe(RECORDS.one)
  const lines = () => fields.filter((line) => 'client' in line)
  await expect.poll(() => lines().length).toBe(MANY)
  expect(lines()).toEqual(lines().map(() => expect.objectContaining({ client: '127.0.0.9' }) as object))
})

test('connections of all threads count against the limits', async () => {
  const { port, told } = await start({ PATCHMIRROR_SERVER_MAX_CONNECTIONS: '4' })
  const open: Socket[] = []
  for (let again = 0; again < MANY; again++) {
    const { socket, ask } = await dial(port)
    expect((await ask(get(ONE))).body).toBe(RECORDS.one)
    open.push(socket)
  }
  await expect.poll(() => open.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(4)
  expect(told.some((line) => /were idle.*server\.maxConnections is 4/.test(line))).toBe(true)
})

longTest(
  'a change that followers hear of is readable in all threads, and no client sees an older state again',
  async () => {
    const { port, store, server, own } = await start()
    const connections = await dialMany(port)
    const { socket } = await dial(port)
    socket.write(get('/-/events', `Authorization: ${String(own['Authorization'])}\r\n`))
    let heard = ''
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    await expect.poll(() => heard).toContain('200 OK')
    for (let round = 1; round <= 8; round++) {
      const events = heard.split('event: ').length
      const running = Promise.all(connections.map(async ({ ask }) => (await ask(get(ONE))).body))
      store.publishOsv({ one: String(round) }, FILLED_AT + round * 1000)
      if (round % 2 === 0) server.snapshotChanged() // else each thread finds it by itself
      await running
      await expect.poll(() => heard.split('event: ').length).toBeGreaterThan(events)
      for (const { ask } of connections) expect((await ask(get(ONE))).body).toBe(String(round))
    }
    for (let round = 9; round <= 40; round++) {
      store.publishOsv({ one: String(round) }, FILLED_AT + round * 1000)
      let newest = 0
      for (const { ask } of connections) {
        const seen = Number((await ask(get(ONE))).body)
        expect(seen).toBeGreaterThanOrEqual(newest)
        newest = seen
      }
    }
  },
)

longTest('a slow client gets all of a large response, one that leaves takes nothing down', async () => {
  const { port, server } = await start({}, {}, { big: BIG })
  for (let again = 0; again < 8; again++) (await stopped(port)).destroy()
  for (let again = 0; again < 4; again++) {
    const socket = await stopped(port, 'Connection: close\r\n')
    await new Promise((resolve) => setImmediate(resolve))
    await once(socket.resume(), 'close')
    expect(socket.bytesRead).toBeGreaterThan(BIG.length)
  }
  await server.close()
})

longTest('closing lets running requests end, closes all other connections, and leaves nothing behind', async () => {
  const { port, server, dir } = await start({}, { closeGraceMs: 3_600_000 }, { big: BIG })
  const folder = join(dir, 'serving')
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  const many = await dialMany(port)
  for (const { ask } of many.slice(0, 12)) await ask(get(ONE))
  const busy = [await stopped(port), await stopped(port), await stopped(port), await stopped(port)]
  const closed = server.close()
  await Promise.all(many.filter(({ socket }) => !socket.closed).map(({ socket }) => once(socket.resume(), 'close')))
  await Promise.all(busy.map((socket) => once(socket.resume(), 'close')))
  for (const socket of busy) expect(socket.bytesRead).toBeGreaterThan(BIG.length)
  await closed
  expect(existsSync(folder)).toBe(false)
  await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED')
})

longTest('a serving thread that dies is logged and replaced, and the port keeps working', async () => {
  const workers: Worker[] = []
  const note = (worker: Worker): unknown => workers.push(worker)
  process.on('worker', note)
  onTestFinished(() => void process.off('worker', note))
  const { port, errors, told } = await start()
  const before = await dialMany(port)
  for (const { ask } of before) await ask(get(ONE))
  await workers[0]?.terminate()
  await expect.poll(() => errors.length).toBe(1)
  await expect.poll(() => before.some(({ socket }) => socket.closed)).toBe(true)
  for (const { socket, ask } of before)
    if (!socket.closed) expect((await ask(get('/-/health'))).head).toContain(' 200 ')
  for (const { ask } of await dialMany(port)) expect((await ask(get(ONE))).body).toBe(RECORDS.one)
  await expect.poll(() => told.some((line) => /serving thread .*was replaced/.test(line))).toBe(true)
  for (const { ask } of await dialMany(port)) expect((await ask(get(ONE))).body).toBe(RECORDS.one)
})

test('only this process can hand a connection over', async () => {
  const { dir } = await start()
  for (const line of [`${'0'.repeat(32)} 0 1\n`, 'GET / HTTP/1.1\r\n\r\n', 'x'.repeat(200)]) {
    const socket = connect(join(dir, 'serving', 's'))
    socket.on('error', () => undefined).write(line)
    await once(socket.resume(), 'close')
    expect(socket.bytesRead).toBe(0)
  }
})

test('a port that another program uses is refused with several threads as with one', async () => {
  const other = createServer().listen({ port: 0, host: '127.0.0.1', reusePort: true })
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const address = other.address()
  const port = String(typeof address === 'object' ? address?.port : 0)
  await expect(start({ PATCHMIRROR_SERVER_PORT: port })).rejects.toThrow(
    /is in use by another program: set server\.port/,
  )
})

longTest('a daemon with several threads takes deliveries on the same port', async () => {
  const { port } = await startDaemon({ PATCHMIRROR_SERVER_THREADS: '3' })
  for (let n = 0; n < MANY; n++) {
    const delivery = deliveryOf({ timestamp: seconds(), id: `evt_${n}` })
    expect((await send(port, { ...delivery, path: '/-/webhooks' })).status).toBe(202)
  }
})

longTest('more connections than wait for the main thread at once are all answered', async () => {
  const { port } = await start()
  const answers = await Promise.all(Array.from({ length: 900 }, async () => (await dial(port)).ask(get('/-/health'))))
  expect(answers.filter(({ head }) => !head.startsWith('HTTP/1.1 200 '))).toEqual([])
})

test('connections that end before they are admitted are closed at once', async () => {
  const { port } = await start()
  const sockets = Array.from({ length: 200 }, () => connect(port, '127.0.0.1').end().resume())
  for (const socket of sockets) onTestFinished(() => void socket.destroy())
  const open = (): number => sockets.filter((socket) => !socket.closed).length
  await expect.poll(open, { timeout: 8_000 }).toBe(0) // ten seconds are for those that stay silent
})
