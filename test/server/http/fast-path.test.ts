import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import { crc32, gunzipSync } from 'node:zlib'
import { afterEach, expect, onTestFinished } from 'vitest'
import { openFastPath } from '../../../src/server/http/fast-path.ts'
import { createAccount } from '../../../src/base/connections/account.ts'
import { packContent } from '../../../src/store/database/gzip.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { raiseDateFloor } from '../../../src/store/feeds/date-floor.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import { FEEDS, FILLED_AT, closeAll, serve, servedToAll } from '../served.ts'
import { longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

const RECORDS = { one: '{"id":"one"}', two: '{"id":"two", "long":"' + 'x'.repeat(3000) + '"}' }

const fill: Parameters<typeof serve>[0] = (store) => {
  store.publishOsv(RECORDS)
  store.publishFeeds(FEEDS)
}
const serveRecords = servedToAll(fill)

/** One connection on which answers are read one at a time. */
async function dial(port: number): Promise<{
  socket: Socket
  ask: (text: string) => Promise<{ head: string; body: string }>
  next: () => Promise<{ head: string; body: string }>
}> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let held = Buffer.alloc(0)
  const next = async () => {
    for (;;) {
      const end = held.indexOf('\r\n\r\n')
      const head = end < 0 ? '' : held.toString('latin1', 0, end)
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (end >= 0 && held.length >= end + 4 + length) {
        const body = held.toString('latin1', end + 4, end + 4 + length)
        held = held.subarray(end + 4 + length)
        return { head, body }
      }
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      held = Buffer.concat([held, chunk])
    }
  }
  const ask = (text: string) => {
    socket.write(text)
    return next()
  }
  return { socket, ask, next }
}

const plain = (path: string, more = '', version = '1.1') => `GET ${path} HTTP/${version}\r\nHost: m\r\n${more}\r\n`

const undated = (head: string) => head.replace(/Date: .*/, 'Date: …')

test('the answers of the fast path equal those of the server byte for byte', async () => {
  const { port } = await serveRecords()
  for (const coding of ['', 'Accept-Encoding: gzip, deflate\r\n', 'accept-encoding: identity\r\n']) {
    for (const id of ['one', 'two', 'one']) {
      const fast = await (await dial(port)).ask(plain(`/external/osv/${id}.json`, coding))
      // A header that is not on the lane's list takes the other way.
      const slow = await (await dial(port)).ask(plain(`/external/osv/${id}.json`, `${coding}X-Other: 1\r\n`))
      expect(undated(fast.head)).toBe(undated(slow.head))
      expect(fast.body).toBe(slow.body)
      expect(fast.head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    }
  }
})

test('no Last-Modified is earlier than the way back of the mirror to older data, on either path', async () => {
  const { port, get } = await serve((store) => {
    fill(store)
    const db = openWriter(store.dir)
    raiseDateFloor(db, FILLED_AT + 3_600_000)
    db.close()
  })
  const date = new Date(FILLED_AT + 3_601_000).toUTCString()
  for (const id of ['one', 'two', 'one']) {
    const fast = await (await dial(port)).ask(plain(`/external/osv/${id}.json`))
    const slow = await (await dial(port)).ask(plain(`/external/osv/${id}.json`, 'X-Other: 1\r\n'))
    expect(undated(fast.head)).toBe(undated(slow.head))
    expect(fast.head).toContain(`Last-Modified: ${date}\r\n`)
  }
  for (const path of [
    '/external/osv/one.json',
    '/external/osv/all.json',
    '/external/osv/all.zip',
    '/external/patch_feed',
  ]) {
    expect((await get(path)).headers['last-modified']).toBe(date)
    expect((await get(path, { 'If-Modified-Since': date })).status).toBe(304)
    const before = new Date(FILLED_AT + 3_600_000).toUTCString()
    expect((await get(path, { 'If-Modified-Since': before })).status).toBe(200)
  }
})

test('a connection moves from the fast path to the server and continues', async () => {
  const { port } = await serveRecords()
  const { ask } = await dial(port)
  for (let again = 0; again < 2; again++) {
    expect((await ask(plain('/external/osv/one.json'))).body).toBe(RECORDS.one)
    expect((await ask(plain('/external/osv/two.json', 'User-Agent: a\r\n'))).body).toBe(RECORDS.two)
    expect((await ask(plain('/external/osv/nothing.json'))).head).toContain('404 Not Found')
    expect((await ask(plain('/external/osv/all.json'))).body).toContain('"modified"')
    expect((await ask(plain('/-/health'))).head).toContain('200 OK')
  }
})

test('a first request that the fast path does not handle gets the right status', async () => {
  const { port } = await serveRecords()
  const first = async (text: string) => (await (await dial(port)).ask(text)).head.split('\r\n')[0]
  const path = '/external/osv/one.json'
  expect(await first(plain(path, 'If-None-Match: *\r\n'))).toContain('304')
  expect(await first(plain(path, 'Connection: close\r\n'))).toContain('200')
  expect(await first(plain(path, 'Connection: keep-alive\r\n'))).toContain('200')
  expect(await first(plain(path, 'Accept: a\r\nAccept: b\r\n'))).toContain('200')
  expect(await first(plain(path, 'Content-Length: 3\r\n') + 'abc')).toContain('200')
  expect(await first(plain(path, 'Expect: nothing-known\r\n'))).toContain('200')
  expect(await first(plain(path, '', '1.0'))).toContain('200')
  expect(await first(`GET http://mirror${path} HTTP/1.1\r\nHost: m\r\n\r\n`)).toContain('200')
  expect(await first(`POST ${path} HTTP/1.1\r\nHost: m\r\nContent-Length: 0\r\n\r\n`)).toContain('405')
  expect(await first(`GET ${path} HTTP/1.1\r\n\r\n`)).toContain('400')
  expect(await first(`GET ${path} HTTP/1.1\r\nHost: m\r\nbad\rheader: 1\r\n\r\n`)).toContain('400')
  expect(await first('NONSENSE\r\n\r\n')).toContain('400')
})

test('requests in pieces and several requests at once are answered in order', async () => {
  const { port } = await serveRecords()
  const pieces = await dial(port)
  for (const piece of ['GET /external/osv/o', 'ne.json HTTP/1.1\r\nHo', 'st: m\r\n\r']) {
    pieces.socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect((await pieces.ask('\n')).body).toBe(RECORDS.one)
  const { socket, next } = await dial(port)
  const paths = ['one', 'two', 'nothing', 'one'].map((id) => plain(`/external/osv/${id}.json`))
  socket.write(paths.join('') + plain('/external/osv/all.zip') + paths.join(''))
  const heads: string[] = []
  const bodies: string[] = []
  for (let answer = 0; answer < 9; answer++) {
    const { head, body } = await next()
    heads.push(head.slice(9, 12))
    bodies.push(body)
  }
  expect(heads.join(' ')).toBe('200 200 404 200 200 200 200 404 200')
  expect([bodies[0], bodies[1], bodies[3], bodies[8]]).toEqual([RECORDS.one, RECORDS.two, RECORDS.one, RECORDS.one])
})

longTest('requests of a client that reads nothing are not queued in memory', async () => {
  const big = 'y'.repeat(2_000_000)
  const { port, server } = await serve((store) => store.publishOsv({ big: `"${big}"` }))
  const { socket } = await dial(port)
  socket.pause()
  for (let request = 0; request < 20; request++) {
    socket.write(plain('/external/osv/big.json'))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  socket.resume()
  let received = 0
  socket.on('data', (chunk) => (received += chunk.length))
  await expect.poll(() => received).toBeGreaterThan(20 * big.length)
  expect(server.address()).not.toBeNull()
})

test('a connection whose last answer is not read yet leaves the fast path with its next request', async () => {
  const seen = { answered: 0, handedOver: 0 }
  const server = createServer((one) => {
    seen.handedOver++
    one.destroy()
  })
  const head = 'HTTP/1.1 200 OK\r\n'
  const body = Buffer.alloc(32_000_000) // more than the system takes for a client that reads nothing
  openFastPath(server, {
    find: () => ({ head, body }),
    keepAliveSeconds: 60,
    isEnabled: () => true,
    takes: () => true,
    event: 'connection',
    account: createAccount(),
    onAnswered: () => seen.answered++,
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => undefined) // it is cut at the end, with what was not read
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  socket.write(plain('/external/osv/one.json'))
  await expect.poll(() => seen).toEqual({ answered: 1, handedOver: 0 })
  socket.write(plain('/external/osv/two.json'))
  await expect.poll(() => seen.answered + seen.handedOver).toBe(2)
  expect(seen).toEqual({ answered: 1, handedOver: 1 })
})

test('a connection stays usable after an upgrade that is ignored', async () => {
  const { port } = await serveRecords()
  const { ask } = await dial(port)
  const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
  for (const more of [upgrade, '', upgrade])
    expect((await ask(plain('/external/osv/one.json', more))).body).toBe(RECORDS.one)
})

test('a client that closes its half first still gets its answer', async () => {
  const { port } = await serveRecords()
  const { socket, next } = await dial(port)
  socket.end(plain('/external/osv/one.json'))
  expect((await next()).body).toBe(RECORDS.one)
  await once(socket, 'close')
})

test('a connection on the fast path is answered from a new snapshot', async () => {
  const { port, store, server } = await serve(fill)
  const { ask } = await dial(port)
  const gzip = 'Accept-Encoding: gzip\r\n'
  await ask(plain('/external/osv/one.json', gzip))
  store.publishOsv({ ...RECORDS, one: '"new"' }, FILLED_AT + 60_000)
  server.snapshotChanged()
  const { body, head } = await ask(plain('/external/osv/one.json', gzip))
  expect(gunzipSync(Buffer.from(body, 'latin1')).toString()).toBe('"new"')
  expect(head).toContain('X-Mirror-As-Of: 2026-07-01T00:01:00.000Z')
})

/** Damages a record's bytes: their checksum finds it. */
const damageBytes = (id: string): string => `
  UPDATE osv_body SET bytes = CAST(substr(bytes, 1, 20) || zeroblob(length(bytes) - 28) || substr(bytes, -8) AS BLOB)
    WHERE rowid = (SELECT body FROM osv_record WHERE id = '${id}')`

/** The same, with the checksum of the damaged bytes: only inflating finds it. */
function damageSealed(id: string): string {
  const member = packContent(Buffer.from('damaged '.repeat(100)), deflate)
  const size = Buffer.byteLength(MANY[id] ?? '')
  member.fill(0, 12, member.length - 8).writeUInt32LE(size, member.length - 4)
  return `
    UPDATE osv_record SET body_crc32 = ${crc32(member)} WHERE id = '${id}';
    UPDATE osv_body SET bytes = x'${member.toString('hex')}'
      WHERE rowid = (SELECT body FROM osv_record WHERE id = '${id}')`
}

const DAMAGES = [
  ['with another checksum', damageBytes],
  ['with its checksum', damageSealed],
] as const

const MANY = Object.fromEntries(
  Array.from({ length: 40 }, (_, i) => [`r${i}`, `{"id":"r${i}","text":"${`${i} `.repeat(300)}"}`]),
)

/** Of the records that are not answered. */
const STATUSES: Readonly<Record<string, string>> = { r7: '503', nothing: '404' }

test.each(DAMAGES)(
  'plain records of many connections at once are each as stored, beside a damaged one %s',
  async (_, damage) => {
    const { port } = await serve((store) => {
      store.publishOsv({ ...MANY, large: JSON.stringify('z'.repeat(200_000)) })
      store.damage(damage('r7'))
    })
    const ids = [...Object.keys(MANY), 'large', 'r3', 'nothing']
    const clients = await Promise.all(ids.map(() => dial(port)))
    for (let again = 0; again < 2; again++) {
      const answers = await Promise.all(clients.map(({ ask }, i) => ask(plain(`/external/osv/${ids[i] ?? ''}.json`))))
      for (const [i, { head, body }] of answers.entries()) {
        const id = ids[i] ?? ''
        const status = STATUSES[id] ?? '200'
        expect([id, head.slice(9, 12)]).toEqual([id, status])
        if (id in MANY) expect(body === MANY[id]).toBe(id !== 'r7')
      }
    }
  },
)

test.each(DAMAGES)('a damaged record %s is reported before the answer to the request behind it', async (_, damage) => {
  const { port, errors } = await serve((store) => {
    store.publishOsv(MANY)
    store.damage(damage('r7'))
  })
  const { socket, ask, next } = await dial(port)
  expect((await ask(plain('/external/osv/r1.json'))).body).toBe(MANY['r1'])
  socket.write(plain('/external/osv/r7.json'))
  socket.write(plain('/external/osv/r2.json'))
  expect((await next()).head).toContain('503')
  expect((await next()).body).toBe(MANY['r2'])
  expect(errors).toHaveLength(1)
  const closing = await dial(port)
  closing.socket.end(plain('/external/osv/r7.json'))
  expect((await closing.next()).head).toContain('503')
  await once(closing.socket, 'close')
  expect(errors).toHaveLength(2)
})

test('a record that waits to be sent while a new snapshot is published is not kept for it', async () => {
  const { port, store, server } = await serve((store) => store.publishOsv(MANY))
  const asked = await dial(port)
  const answer = asked.ask(plain('/external/osv/r1.json'))
  setImmediate(() => {
    store.publishOsv({ ...MANY, r1: '"new"' }, FILLED_AT + 60_000)
    server.snapshotChanged()
  })
  expect([MANY['r1'], '"new"']).toContain((await answer).body)
  const later = await dial(port)
  expect((await later.ask(plain('/external/osv/r1.json'))).body).toBe('"new"')
})

longTest('idle connections are closed after the keep-alive time', async () => {
  const { port } = await serve((store) => store.publishOsv(RECORDS), {
    env: { PATCHMIRROR_SERVER_KEEP_ALIVE_SECONDS: '1' },
  })
  const { socket, ask } = await dial(port)
  expect((await ask(plain('/external/osv/one.json'))).head).toContain('Keep-Alive: timeout=1')
  await once(socket, 'close')
})

test('closing the server ends idle connections at once, on the fast path too', async () => {
  const { port, server } = await serve(fill)
  const fast = await dial(port)
  await fast.ask(plain('/external/osv/one.json'))
  const slow = await dial(port)
  await slow.ask(plain('/-/health'))
  const closed = [once(fast.socket, 'close'), once(slow.socket, 'close')]
  fast.socket.resume()
  slow.socket.resume()
  await server.close()
  await Promise.all(closed)
})

longTest('closing the server disconnects a client on the fast path that reads nothing', async () => {
  const { port, server } = await serve((store) => store.publishOsv({ big: `"${'y'.repeat(8_000_000)}"` }), {
    closeGraceMs: 50,
    env: { PATCHMIRROR_SERVER_CACHE_BYTES: '64 MB' },
  })
  const socket = connect(port, '127.0.0.1').pause()
  socket.write(plain('/external/osv/big.json'))
  await once(socket, 'connect')
  await (await dial(port)).ask(plain('/-/health'))
  await server.close()
  socket.on('error', () => undefined).resume()
  await once(socket, 'close')
})

test('headers of sixty thousand spaces are read in linear time', async () => {
  const { port } = await serveRecords()
  const spaces = ' '.repeat(60_000)
  const { ask } = await dial(port)
  const path = '/external/osv/one.json'
  // Enough of them that reading in quadratic time would take minutes, and hang the test.
  for (let request = 0; request < 40; request++) {
    expect((await ask(plain(path, `Accept: ${spaces}\x80\r\n`))).body).toBe(RECORDS.one)
    const range = `Range: bytes=1-${spaces}x\r\n`
    expect((await ask(plain('/external/osv/all.zip', range))).head).toContain('200 OK')
  }
})

test('a request target with a space does not find a cached filter result', async () => {
  const { port, get } = await serveRecords()
  const filtered = '/external/patch_feed?ecosystem=debian'
  for (let again = 0; again < 2; again++) expect((await get(filtered)).status).toBe(200)
  for (const filter of ['["debian"]', '["debian",null,null]', '["debian","",""]', '{}']) {
    const { head } = await (await dial(port)).ask(plain(`/external/patch_feed ${filter}`))
    expect(head).toMatch(/^HTTP\/1\.1 400 /)
  }
})

test('bytes that are not HTTP are answered 400 after the answers to earlier requests', async () => {
  const { port, raw } = await serveRecords()
  const one = plain('/external/osv/one.json')
  const all = plain('/external/osv/all.zip')
  for (const before of [one, all, one + all, all + one]) {
    const count = before.split('GET ').length - 1
    const text = await raw(`${before}NONSENSE\r\n\r\n`)
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect(statuses).toEqual([...Array<string>(count).fill('200'), '400'])
  }
  expect((await (await dial(port)).ask('NONSENSE\r\n\r\n')).head).toContain('400')
})

longTest('a client that closes its half first gets the whole archive and all earlier answers', async () => {
  const long = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`r${i}`, randomBytes(60_000).toString('hex')]))
  const { port, get } = await serve((store) => store.publishOsv(long))
  const { body } = await get('/external/osv/all.zip')
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.end(plain('/external/osv/r1.json') + plain('/external/osv/all.zip'))
  await once(socket, 'end')
  socket.destroy()
  const got = Buffer.concat(chunks)
  expect(got.toString('latin1').match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
  expect(got.subarray(-body.length).equals(body)).toBe(true)
})

test('a request without a Host header, or with two, is refused with the reason on every path', async () => {
  const { raw } = await serveRecords()
  for (const path of ['/external/osv/one.json', '/-/health', '/v1/me', '/external/osv/all.zip'])
    for (const hosts of ['Host: a\r\nHost: b', 'Host: a\r\nhost: a', 'Hosts: a'])
      expect(await raw(`GET ${path} HTTP/1.1\r\n${hosts}\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 400 [^]*no Host header, or more than one/,
      )
  expect(await raw('GET /-/health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})
