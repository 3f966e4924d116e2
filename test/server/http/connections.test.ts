import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type Socket, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { createHttp } from '../../../src/server/http/node-server.ts'
import { loadQuick } from '../../support/limits.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { longTest, test } from '../../support/tables.ts'
import { type Served, closeAll, serve } from '../served.ts'

afterEach(closeAll)

/** Filled once: its large record is more than sockets buffer. */
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-connections-'))
beforeAll(() => {
  const store = openFilledStore(dir)
  store.publishOsv({ one: '{"id":"one"}', big: `"${'y'.repeat(20_000_000)}"` })
  store.close()
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const start = (env: Record<string, string>, closeGraceMs = 2_000): Promise<Served> =>
  serve(() => undefined, {
    dir,
    keep: true,
    closeGraceMs,
    env: { ...env, PATCHMIRROR_SERVER_CACHE_BYTES: '64 MB' },
  })

/** A connection; what it sends is given, and it takes what comes unless it is stopped. */
async function open({ port }: Served, text = '', stopped = false): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  if (stopped) socket.pause()
  else socket.resume()
  if (text !== '') socket.write(text)
  return socket
}

const closed = (socket: Socket): boolean => socket.closed
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: m\r\n\r\n`

/** Sends a request and waits until some of its answer has come. */
async function answered(served: Served, path: string, stopped = false): Promise<Socket> {
  const socket = await open(served, get(path))
  await once(socket, 'data')
  if (stopped) socket.pause()
  return socket
}

describe('when all connections are in use,', () => {
  test('connections without a complete request are closed for new ones, the oldest first', async () => {
    const served = await start({ PATCHMIRROR_SERVER_MAX_CONNECTIONS: '4' })
    const reader = await answered(served, '/external/osv/one.json')
    const silent = [await open(served), await open(served, 'GET /-/hea'), await open(served)]
    expect((await served.get('/-/health')).status).toBe(200)
    await expect.poll(() => silent.map(closed)).toEqual([true, false, false])
    for (let again = 0; again < 20; again++) {
      silent.push(await open(served))
      expect((await served.get('/external/osv/one.json')).status).toBe(200)
    }
    expect(closed(reader)).toBe(false)
    expect(served.told.filter((line) => /no complete request/.test(line))).toHaveLength(1)
  })

  longTest('idle connections are closed next, and one with a running request stays', async () => {
    const served = await start({ PATCHMIRROR_SERVER_MAX_CONNECTIONS: '3' })
    const stuck = await answered(served, '/external/osv/big.json?x', true)
    const idle = [await answered(served, '/external/osv/one.json'), await answered(served, '/-/status')]
    for (let again = 0; again < 5; again++) expect((await served.get('/-/health')).status).toBe(200)
    await expect.poll(() => idle.map(closed)).toContain(true)
    expect(closed(stuck)).toBe(false)
  })

  longTest('only /-/health is answered while every connection has a running request', async () => {
    const served = await start({ PATCHMIRROR_SERVER_MAX_CONNECTIONS: '2' })
    const path = '/external/osv/big.json?x'
    const busy = [await answered(served, path, true), await answered(served, path, true)]
    for (let again = 0; again < 5; again++) {
      const health = await served.get('/-/health')
      expect([health.status, health.headers.connection]).toEqual([200, 'close'])
      expect((await served.get('/external/osv/one.json')).status).toBe(503)
    }
    expect(served.told.filter((line) => /server\.maxConnections is 2/.test(line))).toHaveLength(1)
    // A further connection is closed for the next one, which gets no more than it did.
    for (let again = 0; again < 3; again++) {
      const spare = await open(served)
      expect((await served.get('/external/osv/one.json')).status).toBe(503)
      await expect.poll(() => closed(spare)).toBe(true)
    }
    expect(busy.map(closed)).toEqual([false, false])
  })
})

longTest.each(['/external/osv/big.json', '/external/osv/big.json?x'])(
  'a client that reads %s slowly gets all of it from a server that closes',
  async (path) => {
    const served = await start({}, 30_000)
    const idle = await answered(served, '/-/health')
    const socket = await open(served, get(path), true)
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.pause()
    await expect.poll(() => socket.readableLength).toBeGreaterThan(0)
    const done = served.server.close()
    await expect.poll(() => closed(idle)).toBe(true) // idle connections are closed now
    socket.resume()
    await once(socket, 'close')
    await done
    const received = Buffer.concat(chunks)
    const head = received.indexOf('\r\n\r\n') + 4
    const length = /content-length: (\d+)/i.exec(received.toString('latin1', 0, head))?.[1]
    expect(received.length - head).toBe(Number(length))
    expect(received.length).toBeGreaterThan(20_000_000)
  },
)

test('a request of which half has come with the one before is answered by a server that closes', async () => {
  const served = await start({}, 30_000)
  const idle = await answered(served, '/-/health')
  const text = get('/-/health')
  const socket = await open(served, text + text.slice(0, 9))
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const replies = (): number => Buffer.concat(chunks).toString().split('HTTP/1.1 200 OK').length - 1
  await expect.poll(replies).toBe(1)
  const done = served.server.close()
  await expect.poll(() => closed(idle)).toBe(true)
  socket.write(text.slice(9))
  await once(socket, 'close')
  expect(replies()).toBe(2)
  await done
})

test('a head that does not arrive within ten seconds ends its connection', () => {
  const { server } = loadQuick({ env: {}, cwd: dir }).config
  const http = createHttp(() => undefined, server, { log: null, certificates: [] })
  expect(http.headersTimeout).toBe(10_000)
})

longTest('one address has as many connections as the setting allows, a trusted proxy has no such limit', async () => {
  const env = { PATCHMIRROR_SERVER_MAX_CONNECTIONS_PER_ADDRESS: '2' }
  const served = await start(env)
  const path = '/external/osv/big.json?x'
  const busy = [await answered(served, path, true), await answered(served, path, true)]
  const third = await open(served, get('/-/health'))
  await once(third, 'close')
  expect(busy.map(closed)).toEqual([false, false])
  expect(served.told.some((line) => /server\.maxConnectionsPerAddress/.test(line))).toBe(true)
  const trusting = await start({ ...env, PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.1' })
  for (let again = 0; again < 4; again++) await answered(trusting, path, true)
})

longTest('an answer that a slow client still reads is sent to its end when the server stops', async () => {
  const served = await serve(() => undefined, {
    dir,
    keep: true,
    closeGraceMs: 3_600_000,
    env: { PATCHMIRROR_SERVER_CACHE_BYTES: '64 MB' },
  })
  const reader = await answered(served, '/external/osv/big.json', true)
  const closing = served.server.close()
  await delay(2000) // longer than a connection without a request may be quiet
  reader.resume()
  await once(reader, 'close')
  await closing
  expect(reader.bytesRead).toBeGreaterThan(20_000_000)
})
