import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { once } from 'node:events'
import { type IncomingMessage, createServer, get as httpGet } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import AdmZip from 'adm-zip'
import { afterAll, afterEach, expect, onTestFinished } from 'vitest'
import { rebuildLostArchive } from '../../../src/archive/build.ts'
import { parseRange } from '../../../src/server/http/conditions.ts'
import { openArchiveFile } from '../../../src/server/http/send-file.ts'
import { derivedDir } from '../../../src/store/database/open.ts'
import { type PinnedReads, openPinnedReads } from '../../../src/store/reads.ts'
import { crc32c, googHash } from '../../../src/archive/zip/crc32c.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { type Served, FILLED_AT, closeAll, jsonOf, serve, servedToAll } from '../served.ts'
import { longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

const PATH = '/external/osv/all.zip'
const RECORDS = { one: '{"id":"one"}', 'two/2': '{"id":"two/2"}', é: '"é"' }

let stored: Buffer = Buffer.alloc(0)
const serveStored = servedToAll((store) => {
  stored = store.publishOsv(RECORDS).archive
})

async function serveArchive(): Promise<Served & { archive: Buffer }> {
  return { ...(await serveStored()), archive: stored }
}

test('the archive is served whole, with its length, checksum and no content coding', async () => {
  const { get, archive } = await serveArchive()
  const reply = await get(PATH, { 'Accept-Encoding': 'gzip' })
  expect(reply.status).toBe(200)
  expect(reply.body.equals(archive)).toBe(true)
  expect(reply.headers).toMatchObject({
    'content-type': 'application/zip',
    'content-length': String(archive.length),
    'accept-ranges': 'bytes',
    'x-goog-hash': googHash(crc32c(archive)),
    'last-modified': 'Wed, 01 Jul 2026 00:00:00 GMT',
    'x-mirror-as-of': '2026-07-01T00:00:00.000Z',
  })
  expect(reply.headers['content-encoding']).toBeUndefined()
  expect(new AdmZip(reply.body).readAsText('two/2.json')).toBe('{"id":"two/2"}')
})

test('HEAD of an archive has the headers of GET, and ignores a range', async () => {
  const { get, head } = await serveArchive()
  const full = await get(PATH)
  for (const headers of [{}, { Range: 'bytes=0-1' }]) {
    const reply = await head(PATH, headers)
    expect([reply.status, reply.body.length]).toEqual([200, 0])
    expect({ ...reply.headers, date: '' }).toEqual({ ...full.headers, date: '' })
  }
})

test.each([
  ['bytes=0-9', 0, 10],
  ['bytes=5-', 5, undefined],
  ['bytes=-7', -7, undefined],
  ['bytes=0-0', 0, 1],
  ['bytes=10-99999999999999999999', 10, undefined],
  ['bytes=-99999999', 0, undefined],
  ['BYTES = 1 - 3', 1, 4],
])('the range %s is answered with that part', async (range, start, end) => {
  const { get, archive } = await serveArchive()
  const part = archive.subarray(start, end)
  const from = start < 0 ? archive.length + start : start
  const reply = await get(PATH, { Range: range })
  expect(reply.status).toBe(206)
  expect(reply.body.equals(part)).toBe(true)
  expect(reply.headers['content-length']).toBe(String(part.length))
  expect(reply.headers['content-range']).toBe(`bytes ${from}-${from + part.length - 1}/${archive.length}`)
  expect(reply.headers['x-goog-hash']).toBe(googHash(crc32c(archive)))
  expect(reply.headers['x-mirror-snapshot']).toBeDefined()
})

test.each(['bytes=0-1,3-4', 'bytes=9-2', 'bytes=a-b', 'items=0-1', 'bytes=', 'bytes=-', '0-1', ''])(
  'the range %j is answered with the whole archive',
  async (range) => {
    const { get, archive } = await serveArchive()
    const reply = await get(PATH, { Range: range })
    expect([reply.status, reply.body.length]).toEqual([200, archive.length])
  },
)

test('a range outside the archive is a 416 that names the size', async () => {
  const { get, archive } = await serveArchive()
  for (const range of [`bytes=${archive.length}-`, 'bytes=99999999-', 'bytes=-0']) {
    const reply = await get(PATH, { Range: range })
    expect([reply.status, jsonOf(reply)['error']]).toEqual([416, 'range_not_satisfiable'])
    expect(reply.headers['content-range']).toBe(`bytes */${archive.length}`)
    expect(reply.headers['x-mirror-snapshot']).toBeDefined()
    expect(reply.headers['cache-control']).toBe('no-store')
  }
})

test('a range ends with the last byte at the latest', () => {
  for (const range of ['bytes=5-', 'bytes=5-9', 'bytes=5-10', 'bytes=5-999', 'bytes=-5'])
    expect(parseRange(range, 10), range).toEqual({ start: 5, end: 9 })
})

test('a range of an empty file is never satisfiable', () => {
  expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseRange('bytes=-5', 0)).toBe('unsatisfiable')
})

test('a range with a current If-Range gets a part, with another one the whole archive', async () => {
  const { get } = await serveArchive()
  const { headers } = await get(PATH)
  const ask = async (value: string) => (await get(PATH, { Range: 'bytes=0-3', 'If-Range': value })).status
  expect(await ask(headers.etag ?? '')).toBe(206)
  expect(await ask(headers['last-modified'] ?? '')).toBe(206)
  expect(await ask('"other"')).toBe(200)
  expect(await ask(`W/${headers.etag ?? ''}`)).toBe(200)
  expect(await ask('Thu, 02 Jul 2026 00:00:00 GMT')).toBe(200)
})

test('a range request with matching validators is a 304', async () => {
  const { get } = await serveArchive()
  const { headers } = await get(PATH)
  const reply = await get(PATH, { 'If-None-Match': headers.etag ?? '', Range: 'bytes=0-3' })
  expect([reply.status, reply.body.length]).toEqual([304, 0])
  expect(reply.headers.etag).toBe(headers.etag)
  const since = { 'If-Modified-Since': headers['last-modified'] ?? '' }
  expect((await get(PATH, since)).status).toBe(304)
})

/** Incompressible records of these megabytes. */
function bulk(name: string, megabytes: number): Record<string, Buffer> {
  const records: Record<string, Buffer> = {}
  for (let i = 0; i < megabytes * 4; i++) records[`${name}-${i}`] = randomBytes(262_144)
  return records
}

let large: { dir: string; archive: Buffer } | null = null
afterAll(() => {
  if (large !== null) rmSync(large.dir, { recursive: true })
})

/** Serves a copy of a folder with an archive that is far larger than what sockets buffer; it is filled once. */
async function serveLarge(): Promise<Served & { archive: Buffer }> {
  if (large === null) {
    const dir = mkdtempSync(join(tmpdir(), 'patchmirror-large-'))
    const store = openFilledStore(dir)
    large = { dir, archive: store.publishOsv(bulk('big', 12)).archive }
    store.close()
  }
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-api-'))
  cpSync(large.dir, dir, { recursive: true })
  return { ...(await serve(() => undefined, { dir })), archive: large.archive }
}

function open(port: number, headers = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpGet({ port, host: '127.0.0.1', path: PATH, headers, agent: false }, resolve).once('error', reject)
  })
}

async function drainOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

longTest('a download that began before a new snapshot continues with the old bytes', async () => {
  const served = await serveLarge()
  const slow = await open(served.port)
  const files = readdirSync(derivedDir(served.dir))
  const { archive } = served.store.publishOsv(bulk('new', 1), FILLED_AT + 60_000)
  served.server.snapshotChanged()
  for (const file of files) rmSync(join(derivedDir(served.dir), file))
  expect((await served.get(PATH)).body.equals(archive)).toBe(true)
  expect((await drainOf(slow)).equals(served.archive)).toBe(true)
})

longTest('clients that read nothing use little memory, and other clients are served meanwhile', async () => {
  const served = await serveLarge()
  await served.get(PATH)
  collectGarbage()
  const before = process.memoryUsage().arrayBuffers
  const readers = Array.from({ length: 100 }, () => {
    const socket = connect(served.port, '127.0.0.1').pause()
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: m\r\n\r\n`)
    return socket
  })
  await Promise.all(readers.map((socket) => once(socket, 'connect')))
  for (let again = 0; again < 20; again++) expect((await served.get('/external/osv/big-1.json')).status).toBe(200)
  await expect
    .poll(() => {
      collectGarbage()
      return (process.memoryUsage().arrayBuffers - before) / readers.length
    })
    .toBeLessThan(64 * 1024)
  for (const reader of readers) reader.destroy()
})

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

longTest('a client that disconnects during a download leaves no error behind', async () => {
  const served = await serveLarge()
  const socket = connect(served.port, '127.0.0.1')
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: m\r\n\r\n`)
  await once(socket, 'data')
  socket.destroy()
  expect((await served.get(PATH)).status).toBe(200)
  expect(served.errors).toEqual([])
})

test('an archive that is missing or truncated is a 503 and is logged', async () => {
  const served = await serve((store) => {
    store.publishOsv(RECORDS)
    for (const file of readdirSync(derivedDir(store.dir))) truncateSync(join(derivedDir(store.dir), file), 40)
  })
  expect((await served.get(PATH)).status).toBe(503)
  for (const file of readdirSync(derivedDir(served.dir))) rmSync(join(derivedDir(served.dir), file))
  const reply = await served.get(PATH)
  expect([reply.status, jsonOf(reply)['error']]).toEqual([503, 'storage'])
  expect(reply.body.toString()).not.toContain(served.dir)
  expect(served.errors).toHaveLength(2)
})

/** Reads of a data folder until the test ends. */
function openReads(dir: string): PinnedReads {
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('nothing is stored')
  onTestFinished(() => reads.close())
  return reads
}

test('a damaged archive that is made again is served from then on, although nothing was published', async () => {
  const served = await serve((store) => void store.publishOsv(RECORDS))
  const [file = ''] = readdirSync(derivedDir(served.dir))
  const path = join(derivedDir(served.dir), file)
  const sound = readFileSync(path)
  const damaged = Buffer.from(sound)
  damaged[40] = (damaged[40] ?? 0) ^ 1
  writeFileSync(path, damaged)
  expect((await served.get(PATH)).body.equals(damaged)).toBe(true)
  const reads = openReads(served.dir)
  expect(await rebuildLostArchive(reads.live.osv, served.dir, true)).toBe(true)
  expect((await served.get(PATH)).body.equals(sound)).toBe(true)
})

longTest('an archive that is truncated while it is sent ends in a broken connection', async () => {
  const served = await serveLarge()
  const response = await open(served.port)
  const [file = ''] = readdirSync(derivedDir(served.dir))
  truncateSync(join(derivedDir(served.dir), file), 1_000_000)
  await expect(drainOf(response)).rejects.toThrow()
})

test('a file that is stored as gzip only is inflated as it is sent, any part of it, and a damaged one is cut off', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-packed-'))
  const content = Buffer.from(randomBytes(60_000).toString('hex'))
  const stored = gzipSync(content)
  writeFileSync(join(folder, 'list.gz'), stored)
  const info = { file: 'list.gz', size: content.length, sha256: '', crc32c: 0, changed: 0 }
  const packed = { file: 'list.gz', size: stored.length }
  const send = async (start: number, end: number): Promise<Buffer | string> => {
    const server = createServer((_, response) => {
      const file = openArchiveFile(folder, info, packed)
      const sent = file.send(response, start, end).finally(() => file.release())
      sent.catch((error: unknown) => response.end(`!${String(error)}`))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const reply = await fetch(`http://127.0.0.1:${port}/`)
    const body = Buffer.from(await reply.arrayBuffer())
    server.close()
    return body
  }
  for (const [start, end] of [
    [0, content.length - 1],
    [70_000, 99_999],
    [119_999, 119_999],
  ] as const)
    expect(content.subarray(start, end + 1).equals((await send(start, end)) as Buffer)).toBe(true)
  writeFileSync(join(folder, 'list.gz'), Buffer.concat([stored.subarray(0, -20), Buffer.alloc(20)]))
  expect(String(await send(0, content.length - 1)).includes('!')).toBe(true)
  packed.size++
  expect(() => openArchiveFile(folder, info, packed)).toThrow(/bytes, not/)
  rmSync(folder, { recursive: true })
})
