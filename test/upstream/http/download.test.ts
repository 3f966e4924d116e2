import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import type { Session } from '../../../src/upstream/http/session.ts'
import { type DownloadOptions, downloadFile } from '../../../src/upstream/http/download.ts'
import { OSV_ARCHIVE } from '../../../src/base/domain/feed-paths.ts'
import { type Answer, createOrigin } from '../../support/origin.ts'
import { type Connection, connect, refusal, sandbox, scratch } from './sessions.ts'
import { longTest, test } from '../../support/tables.ts'

const FILE = Buffer.from('0123456789'.repeat(1000))
const PATH = '/file.zip'

/** Options for a target in a folder of its own. */
function into({ config }: Connection, more: Partial<DownloadOptions> = {}): DownloadOptions & { part: string } {
  const target = join(scratch(), 'file.zip')
  const options = {
    target,
    config,
    onProgress: () => undefined,
    checkRoom: () => Promise.resolve(),
  }
  return { ...options, ...more, part: `${target}.part` }
}

/** Leaves a part as an interrupted download does. */
function leavePart(
  part: string,
  bytes: Buffer,
  said: { validator: string | null; etag?: string | null; lastModified?: string | null },
): void {
  writeFileSync(part, bytes)
  writeFileSync(`${part}.json`, JSON.stringify({ etag: null, lastModified: null, ...said }))
}

/** What the interrupted downloads below ask for next. */
const ASKED = { range: 'bytes=4000-', 'if-range': '"one"' }
const HAVE = FILE.subarray(0, 4000)
const KNOWN = { validator: '"one"', etag: '"one"', lastModified: null }

/** An origin with FILE; to a request with a Range it answers as the test sets. */
async function origin(toRange: Answer, toWhole: Answer = whole): Promise<Connection & Asked> {
  const { url, requests } = await createOrigin((request, response) => {
    if (request.headers.range === undefined) toWhole(request, response)
    else toRange(request, response)
  })
  return {
    ...connect(url),
    ranges: () => requests.map(({ headers }) => headers.range ?? null),
    headersOf: (i) => requests[i]?.headers ?? {},
  }
}

interface Asked {
  ranges(): (string | null)[]
  headersOf(i: number): Record<string, unknown>
}

const whole: Answer = (_request, response) => {
  response.writeHead(200, { ETag: '"two"', 'Content-Length': FILE.length }).end(FILE)
}

const partial =
  (headers: Record<string, string | number>, body: Buffer): Answer =>
  (_request, response) => {
    response.writeHead(206, headers).end(body)
  }

const rest = partial({ ETag: '"one"', 'Content-Range': `bytes 4000-9999/${FILE.length}` }, FILE.subarray(4000))

/** An origin that gives FILE in pieces and hangs up once a piece is on disk; after `pieces` of them it gives nothing. */
async function breaking(
  piece: number,
  pieces = Infinity,
  upstream: Record<string, string> = {},
): Promise<Connection & { options: ReturnType<typeof into>; ranges: (string | undefined)[] }> {
  const ranges: (string | undefined)[] = []
  let hangUp = (): void => undefined
  const { url } = await createOrigin((request, response) => {
    const { range } = request.headers
    ranges.push(range)
    const from = Number(/\d+/.exec(range ?? '0')?.[0])
    const place = range === undefined ? {} : { 'Content-Range': `bytes ${from}-9999/10000` }
    const headers = { ETag: '"one"', 'Content-Length': FILE.length - from, ...place }
    response.writeHead(range === undefined ? 200 : 206, headers)
    response.flushHeaders()
    hangUp = () => response.socket?.destroySoon()
    if (ranges.length > pieces) hangUp()
    else response.write(FILE.subarray(from, from + piece))
  })
  const connection = connect(url, upstream)
  const onDisk = async (size: number): Promise<void> => {
    while (statSync(options.part, { throwIfNoEntry: false })?.size !== size) {
      await new Promise(setImmediate)
    }
  }
  const options = into(connection, {
    onProgress: (done) => {
      if (done < FILE.length) void onDisk(done).then(() => hangUp())
    },
  })
  return { ...connection, options, ranges }
}

const download = (session: Session, options: DownloadOptions) => downloadFile(session, PATH, options)

describe('a download', () => {
  test('leaves only the complete file in its place', async () => {
    const service = await sandbox({ records: 300 })
    const connection = connect(service.url)
    const seen: [number, number | null][] = []
    const rooms: number[] = []
    const options = into(connection, {
      onProgress: (done, total) => seen.push([done, total]),
      checkRoom: (bytes) => Promise.resolve(void rooms.push(bytes)),
    })
    const meta = await downloadFile(connection.session, OSV_ARCHIVE, options)
    const zip = service.feed.archive()
    expect(readFileSync(options.target).equals(zip)).toBe(true)
    expect([existsSync(options.part), existsSync(`${options.part}.json`)]).toEqual([false, false])
    expect(meta).toMatchObject({ length: zip.length, etag: expect.stringMatching(/^"/) as string })
    expect(seen.at(-1)).toEqual([zip.length, zip.length])
    expect(rooms).toEqual([zip.length])
    expect(connection.session.cost).toEqual({ requests: 1, bytes: zip.length, retries: 0 })
  })

  test('is resumed after interruptions as long as it makes progress', async () => {
    const connection = await breaking(2000)
    await download(connection.session, connection.options)
    expect(readFileSync(connection.options.target).equals(FILE)).toBe(true)
    expect(connection.session.cost).toEqual({ requests: 5, bytes: FILE.length, retries: 4 })
    expect(connection.ranges).toEqual([undefined, ...[2, 4, 6, 8].map((i) => `bytes=${i}000-`)])
  })

  test('that makes no progress is given up after the attempts allowed', async () => {
    const connection = await breaking(2000, 3)
    await refusal('upstream_unreachable', download(connection.session, connection.options))
    expect(connection.session.cost).toEqual({ requests: 5, bytes: 6000, retries: 4 })
    expect(existsSync(connection.options.target)).toBe(false)
    expect(readFileSync(connection.options.part).equals(FILE.subarray(0, 6000))).toBe(true)
  })

  test('that upstream cannot resume is not restarted without end', async () => {
    const service = await sandbox({ records: 300, ranges: false })
    service.faults.set(OSV_ARCHIVE, { kind: 'truncate', bytes: 5000 })
    const connection = connect(service.url)
    await refusal('upstream_unreachable', downloadFile(connection.session, OSV_ARCHIVE, into(connection)))
    expect(connection.session.cost.requests).toBeLessThanOrEqual(5)
  })

  longTest('ends at its deadline, also while bytes come', async () => {
    const service = await sandbox({ records: 60 })
    service.faults.set(OSV_ARCHIVE, { kind: 'slow', bytesPerSecond: 5000 })
    const connection = connect(service.url)
    const options = into(connection, { timeoutMs: 400 })
    const { message } = await refusal('upstream_unreachable', downloadFile(connection.session, OSV_ARCHIVE, options))
    expect(message).toContain('400 ms')
    expect(existsSync(options.target)).toBe(false)
  })

  test('of an earlier run is resumed by the next one', async () => {
    const first = await breaking(4000, Infinity, { RETRIES: '0' })
    await refusal('upstream_unreachable', download(first.session, first.options))
    const second = await origin(rest)
    const { target, part } = first.options
    await download(second.session, { ...into(second), target })
    expect(readFileSync(target).equals(FILE)).toBe(true)
    expect(second.headersOf(0)).toMatchObject(ASKED)
    expect(second.session.cost).toEqual({ requests: 1, bytes: 6000, retries: 0 })
    expect([existsSync(part), existsSync(`${part}.json`)]).toEqual([false, false])
  })

  test('of an earlier run restarts when the file changed', async () => {
    const service = await sandbox({ records: 300 })
    service.faults.set(OSV_ARCHIVE, { kind: 'truncate', bytes: 5000 }, { times: 1 })
    const first = connect(service.url, { RETRIES: '0' })
    const options = into(first)
    await refusal('upstream_unreachable', downloadFile(first.session, OSV_ARCHIVE, options))
    service.feed.change(5)
    const second = connect(service.url)
    await downloadFile(second.session, OSV_ARCHIVE, options)
    const zip = service.feed.archive()
    expect(readFileSync(options.target).equals(zip)).toBe(true)
    expect(second.session.cost).toMatchObject({ requests: 1, bytes: zip.length })
  })
})

describe('an interrupted download', () => {
  const resume = async (connection: Connection, said = KNOWN as Parameters<typeof leavePart>[2]) => {
    const options = into(connection)
    leavePart(options.part, HAVE, said)
    const meta = await download(connection.session, options)
    expect(readFileSync(options.target).equals(FILE)).toBe(true)
    return meta
  }

  test('continues when the server confirms that it is the same file', async () => {
    const connection = await origin(rest)
    const meta = await resume(connection)
    expect(connection.headersOf(0)).toMatchObject(ASKED)
    expect(meta.etag).toBe('"one"')
    expect(connection.session.cost).toMatchObject({ requests: 1, bytes: 6000 })
  })

  test('keeps the validators of its first part when the rest has none', async () => {
    const silent = partial({ 'Content-Range': 'bytes 4000-9999/10000' }, FILE.subarray(4000))
    const said = { ...KNOWN, lastModified: 'Fri, 01 May 2026 00:00:00 GMT' }
    const meta = await resume(await origin(silent), said)
    expect(meta).toMatchObject({ etag: '"one"', lastModified: said.lastModified })
  })

  test.each(['null', '[]', '5', '{"etag":"\\"one\\""}', '{"validator":5,"etag":null,"lastModified":{}}'])(
    'restarts where the note of its first part has another shape: %s',
    async (note) => {
      const connection = await origin(rest)
      const options = into(connection)
      writeFileSync(options.part, HAVE)
      writeFileSync(`${options.part}.json`, note)
      await downloadFile(connection.session, PATH, options)
      expect(connection.ranges()).toEqual([null])
      expect(readFileSync(options.target)).toEqual(FILE)
    },
  )

  test('continues by date where there is no ETag', async () => {
    const date = 'Fri, 01 May 2026 00:00:00 GMT'
    const dated = partial({ 'Last-Modified': date, 'Content-Range': 'bytes 4000-9999/10000' }, FILE.subarray(4000))
    const connection = await origin(dated)
    await resume(connection, { validator: date, lastModified: date })
    expect(connection.headersOf(0)).toMatchObject({ range: 'bytes=4000-', 'if-range': date })
  })

  test('requests the remainder when a part ends early', async () => {
    let answers = 0
    const connection = await origin((request, response) => {
      const from = Number(/\d+/.exec(request.headers.range ?? '')?.[0])
      const to = answers++ === 0 ? 6999 : 9999
      const headers = { ETag: '"one"', 'Content-Range': `bytes ${from}-${to}/10000` }
      response.writeHead(206, headers).end(FILE.subarray(from, to + 1))
    })
    await resume(connection)
    expect(connection.ranges()).toEqual(['bytes=4000-', 'bytes=7000-'])
  })

  test.each([
    ['the whole of a changed file', whole, ['bytes=4000-']],
    ['416', (_q, a) => a.writeHead(416).end(), ['bytes=4000-', null]],
    ['a part of another place', partial({ 'Content-Range': 'bytes 4001-9999/10000' }, FILE), 2],
    ['a part without a place', partial({}, FILE.subarray(4000)), 2],
    [
      'the rest of another version (If-Range ignored)',
      partial({ ETag: '"two"', 'Content-Range': 'bytes 4000-9999/10000' }, Buffer.alloc(6000)),
      2,
    ],
    ['304, unasked', (_q, a) => a.writeHead(304).end(), 2],
  ] as [string, Answer, (string | null)[] | number][])(
    'restarts when the response is %s',
    async (_what, answer, asked) => {
      const connection = await origin(answer)
      expect((await resume(connection)).etag).toBe('"two"')
      const expected = typeof asked === 'number' ? ['bytes=4000-', null] : asked
      expect(connection.ranges()).toEqual(expected)
    },
  )

  test('restarts at another date without an ETag', async () => {
    const then = 'Fri, 01 May 2026 00:00:00 GMT'
    const now = 'Sat, 02 May 2026 00:00:00 GMT'
    const later = partial({ 'Last-Modified': now, 'Content-Range': 'bytes 4000-9999/10000' }, Buffer.alloc(6000))
    const connection = await origin(later)
    await resume(connection, { validator: then, lastModified: then })
    expect(connection.ranges()).toEqual(['bytes=4000-', null])
  })

  test('is discarded without a strong validator', async () => {
    const connection = await origin(rest)
    await resume(connection, { validator: null, etag: 'W/"one"' })
    expect(connection.ranges()).toEqual([null])
  })

  test('is discarded when its note is damaged', async () => {
    for (const damage of ['', '{"valid', 'null', '"text"', '[]']) {
      const connection = await origin(rest)
      const options = into(connection)
      writeFileSync(options.part, HAVE)
      writeFileSync(`${options.part}.json`, damage)
      await download(connection.session, options)
      expect(readFileSync(options.target).equals(FILE)).toBe(true)
      expect(connection.ranges()).toEqual([null])
    }
  })

  test.each([
    ['a strong ETag', { ETag: '"s"', 'Last-Modified': 'yesterday' }, '"s"'],
    ['a date where there is no ETag', { 'Last-Modified': 'yesterday' }, 'yesterday'],
    ['nothing where the ETag is weak', { ETag: 'W/"w"', 'Last-Modified': 'yesterday' }, null],
    ['nothing where there is no validator', {}, null],
  ] as [string, Record<string, string>, string | null][])(
    'keeps %s for the next run',
    async (_what, headers, validator) => {
      const { url } = await createOrigin((_request, response) => {
        response.writeHead(200, { ...headers, 'Content-Length': 10 }).write('01234')
        response.socket?.destroySoon()
      })
      const connection = connect(url, { RETRIES: '0' })
      const options = into(connection)
      await refusal('upstream_unreachable', download(connection.session, options))
      expect(JSON.parse(readFileSync(`${options.part}.json`, 'utf8'))).toMatchObject({ validator })
    },
  )
})

describe('a download is refused', () => {
  test('when its length is over the cap, before the body is read', async () => {
    const { url } = await createOrigin(whole)
    const connection = connect(url, { MAX_BYTES: 'archive=9999' })
    const { message } = await refusal('upstream_too_large', download(connection.session, into(connection)))
    expect(message).toContain('10000 bytes, the cap (upstream.maxBytes, archive) is 9999')
    expect(connection.session.cost).toEqual({ requests: 1, bytes: 0, retries: 0 })
  })

  test('when it grows over the cap without a declared length', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.write(FILE)
      response.end(FILE)
    })
    const connection = connect(url, { MAX_BYTES: 'archive=10001' })
    await refusal('upstream_too_large', download(connection.session, into(connection)))
    expect(connection.session.cost.requests).toBe(1)
  })

  test('when its remainder would make it larger than the cap', async () => {
    const { url } = await createOrigin(rest)
    const connection = connect(url, { MAX_BYTES: 'archive=9999' })
    const options = into(connection)
    leavePart(options.part, HAVE, KNOWN)
    await refusal('upstream_too_large', download(connection.session, options))
  })

  test('when there is no room for it, and its connection is closed', async () => {
    let closed: () => void = () => undefined
    const gone = new Promise<void>((resolve) => (closed = resolve))
    const { url } = await createOrigin((_request, response) => {
      response.on('close', closed)
      response.writeHead(200, { 'Content-Length': 1_000_000_000 }).write(FILE)
    })
    const connection = connect(url)
    const full = new MirrorError('storage', 'no room')
    const options = into(connection, { checkRoom: () => Promise.reject(full) })
    await refusal('storage', download(connection.session, options))
    await gone
    expect(connection.session.cost.requests).toBe(1)
    expect(existsSync(options.part)).toBe(false)
  })

  test('when its folder cannot be written, and not as a network error', async () => {
    const { url, requests } = await createOrigin(whole)
    const connection = connect(url)
    const options = into(connection)
    mkdirSync(options.part)
    const error: unknown = await download(connection.session, options).catch((e: unknown) => e)
    expect(error).not.toBeInstanceOf(MirrorError)
    expect(requests.length).toBe(1)
  })

  test('when it is compressed', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(FILE)
    })
    const connection = connect(url)
    const { message } = await refusal('upstream_shape', download(connection.session, into(connection)))
    expect(message).toContain('content encoding gzip')
  })
})

describe('a slow or stalled download', () => {
  longTest('is given up when it is slower than the settings allow', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(200, { 'Content-Length': FILE.length })
      const drip = setInterval(() => response.write('x'), 100)
      response.on('close', () => clearInterval(drip))
    })
    const connection = connect(url, { LOW_SPEED_SECONDS: '1', RETRIES: '0' })
    const { message } = await refusal('upstream_unreachable', download(connection.session, into(connection)))
    expect(message).toContain('slower than 1000 bytes/s over 1 s')
  })

  longTest('ends at its deadline, which covers all attempts', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(200, { 'Content-Length': FILE.length }).write('x')
    })
    const connection = connect(url, { LOW_SPEED_SECONDS: '30' })
    const options = into(connection, { timeoutMs: 200 })
    const { message } = await refusal('upstream_unreachable', download(connection.session, options))
    expect(message).toContain('no complete answer within')
  })

  test('ends at once at the abort signal, and keeps its part', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(200, { ETag: '"one"', 'Content-Length': FILE.length }).write('0123')
    })
    const connection = connect(url, { LOW_SPEED_SECONDS: '30' })
    const options = into(connection, { onProgress: () => connection.stop.abort() })
    await expect(download(connection.session, options)).rejects.toMatchObject({
      name: 'AbortError',
    })
    expect(existsSync(options.part)).toBe(true)
    expect(connection.session.cost.requests).toBe(1)
  })
})
