import { createReadStream } from 'node:fs'
import { PassThrough, Readable } from 'node:stream'
import { open } from 'node:fs/promises'
import { digestOfChunks } from '../../../base/digest.ts'
import { runPool } from '../../../base/pacing.ts'
import type { StoreCounters } from './counted-store.ts'
import {
  FleetError,
  type GetOptions,
  type ObjectBody,
  type ObjectInfo,
  type ObjectStore,
  OversizedError,
  checkKey,
} from './object-store.ts'
import { type Answered, type Condition, type Part, type S3Requests, type S3Settings, connectS3 } from './s3.ts'
import { type ExpectedFailure, type StoreCall, type StoreSender, createStoreSender } from './s3-sender.ts'

/** A file of more bytes is uploaded in parts. */
const SINGLE_BYTES = 64 << 20
/** Bytes of a part, of which some are in memory at once. S3 allows parts from 5 MB on. */
const PART_BYTES = 16 << 20
/** Longest time without a byte of a body, milliseconds. */
const STALL_MS = 60_000

/** Options that tests change. */
export interface S3Options {
  readonly counters: StoreCounters
  readonly singleBytes?: number
  readonly stallMs?: number
  readonly partBytes?: number
  readonly answerMs?: number
  readonly pauseMs?: number
  readonly load?: Parameters<typeof connectS3>[2]
}

/** What the calls of a store share. */
interface Wire {
  readonly requests: S3Requests
  readonly send: StoreSender
  /** Before each key: empty, or ending in a slash. */
  readonly prefix: string
  readonly singleBytes: number
  readonly partBytes: number
  readonly stallMs: number
}

/** Creates a store in a bucket of an S3-compatible service; `url` is s3://BUCKET or s3://BUCKET/PREFIX. */
export async function createS3Store(url: string, settings: S3Settings, options: S3Options): Promise<ObjectStore> {
  const { hostname, pathname } = new URL(url)
  const bucket = /^s3:\/\/([^/]+)/.exec(url)?.[1] ?? hostname
  const { counters, load, answerMs, pauseMs } = options
  const { singleBytes = SINGLE_BYTES, partBytes = PART_BYTES, stallMs = STALL_MS } = options
  const requests = await connectS3(bucket, settings, load)
  const closing = new AbortController()
  const place = settings.endpoint === null ? url : `${url} at ${settings.endpoint}`
  const send = createStoreSender({ place, counters, closing: closing.signal, answerMs, pauseMs })
  const prefix = /^\/?$/.test(pathname) ? '' : `${pathname.slice(1)}/`
  const wire = { requests, send, prefix, singleBytes, partBytes, stallMs }
  return {
    url,
    get: (key, getOptions = {}) => get(wire, key, getOptions),
    async head(key) {
      const found = await sendHead(wire, key)
      return typeof found === 'string' ? null : infoOf(key, found)
    },
    async put(key, body) {
      const info = await write(wire, 'put', key, body, {})
      if (info !== null) return info
      throw new FleetError('unknown', `${place}: ${key} was refused by a condition that was not set`)
    },
    putIfAbsent: (key, body) => write(wire, 'put_if_absent', key, body, { IfNoneMatch: '*' }),
    putIfMatch: (key, body, etag) => write(wire, 'put_if_match', key, body, { IfMatch: etag }),
    list: (part) => list(wire, part),
    async delete(key) {
      const name = nameOf(wire, key)
      await send({ verb: 'delete', what: `delete ${key}` }, (signal) => requests.delete(name, signal))
    },
    close() {
      closing.abort()
      requests.close()
    },
  }
}

function nameOf({ prefix }: Wire, key: string): string {
  checkKey(key)
  return prefix + key
}

function infoOf(key: string, { size, etag, modifiedAt }: Answered): ObjectInfo {
  return { key, size, etag, modifiedAt: modifiedAt ?? Date.now() }
}

function sendHead(wire: Wire, key: string): Promise<Answered | ExpectedFailure> {
  const name = nameOf(wire, key)
  const call = { verb: 'head', what: `read ${key}` } as const
  return wire.send(call, (signal) => wire.requests.head(name, signal))
}

async function get(
  wire: Wire,
  key: string,
  { from = 0, maxBytes = Infinity }: GetOptions,
): Promise<{ info: ObjectInfo; body: Readable } | null> {
  const { requests, send } = wire
  const name = nameOf(wire, key)
  const call = { verb: 'get', what: `read ${key}` } as const
  const found = await send(call, (signal) => requests.get(name, from, signal))
  if (found === 'range') {
    const info = await sendHead(wire, key)
    return typeof info === 'string' ? null : { info: infoOf(key, info), body: Readable.from([]) }
  }
  if (typeof found === 'string') return null
  const { body, length, size } = found
  if (length <= maxBytes && size - length === from)
    return { info: infoOf(key, found), body: watched(body, key, length, wire.stallMs) }
  body.destroy()
  if (length > maxBytes) throw new OversizedError(key, size, from + maxBytes)
  throw new FleetError('refused', `fleet.url: the store sent ${key} as a whole, though a part was asked for`)
}

/** The same body, which errs with a `FleetError` when it breaks off, stalls, or has another length than announced. */
function watched(body: Readable, key: string, length: number, stallMs: number): Readable {
  const out = new PassThrough()
  let received = 0
  const fail = (why: string, cause?: unknown): void => {
    const text = `fleet.url: ${key} broke off after ${received} of ${length} bytes (${why})`
    out.destroy(new FleetError('unknown', text, { cause }))
  }
  const stalled = (): void => fail(`no byte came for ${stallMs / 1000} s`)
  let timer = setTimeout(stalled, stallMs)
  body.on('data', (piece: Buffer) => {
    received += piece.length
    clearTimeout(timer)
    if (received > length) return fail('the store sends more than it announced')
    timer = setTimeout(stalled, stallMs)
  })
  body.once('error', (error) => fail(error.message, error))
  body.once('end', () => {
    clearTimeout(timer)
    if (received === length) out.end()
    else fail('the store ended it')
  })
  out.once('close', () => {
    clearTimeout(timer)
    body.destroy()
  })
  body.pipe(out, { end: false })
  return out
}

async function write(
  wire: Wire,
  verb: 'put' | 'put_if_absent' | 'put_if_match',
  key: string,
  body: ObjectBody,
  condition: Condition,
): Promise<ObjectInfo | null> {
  const { requests, send, singleBytes, partBytes } = wire
  const name = nameOf(wire, key)
  if (!Buffer.isBuffer(body)) await checkFile(key, body)
  const size = Buffer.isBuffer(body) ? body.length : body.size
  const isOnce = verb !== 'put'
  const call = { verb, what: `write ${key}`, bytes: size, isOnce }
  const answer =
    Buffer.isBuffer(body) || size <= singleBytes
      ? await send(call, (signal) => requests.put(name, body, condition, signal))
      : await uploadParts({ requests, send, call, partBytes }, name, body, condition)
  if (typeof answer === 'string') {
    const isCondition = answer === 'condition' || (answer === 'missing' && condition.IfMatch !== undefined)
    if (isCondition) return null
    throw new FleetError('refused', `fleet.url: cannot ${call.what}: the store answered ${STATUS[answer]}`)
  }
  if (answer.etag !== '') return infoOf(key, { ...answer, size })
  const found = await sendHead(wire, key)
  if (typeof found !== 'string') return infoOf(key, found)
  throw new FleetError('unknown', `fleet.url: ${key} was written, and is not there`)
}

/** Answers that say nothing about the condition of a write. */
const STATUS = { missing: 404, condition: 412, range: 416 } as const

/** Refuses a file that is not the one described, before any of it is sent. */
async function checkFile(key: string, body: Exclude<ObjectBody, Buffer>): Promise<void> {
  const stream = createReadStream(body.file)
  const sha256 = await digestOfChunks(stream)
  if (sha256 === body.sha256 && stream.bytesRead === body.size) return
  throw new FleetError('refused', `${body.file} changed before it was written to ${key}`)
}

async function* list(wire: Wire, part: string): AsyncGenerator<ObjectInfo> {
  const { requests, send, prefix } = wire
  const call = { verb: 'list', what: `list ${part}` } as const
  let after: string | undefined
  do {
    const page = await send(call, (signal) => requests.list(prefix + part, after, signal))
    if (typeof page === 'string') throw new FleetError('unknown', `fleet.url: ${call.what}: ${page}`)
    for (const one of page.objects) yield infoOf(one.key.slice(prefix.length), one)
    if (page.next !== undefined && page.next === after)
      throw new FleetError('unknown', `fleet.url: ${call.what}: the store repeats a page`)
    if (page.next === undefined && page.isCut)
      throw new FleetError(
        'unknown',
        `fleet.url: ${call.what}: the store sent a part, and does not say how to ask for the rest`,
      )
    after = page.next
  } while (after !== undefined)
}

/** Parts that S3 allows. */
const MAX_PARTS = 10_000
/** Parts that are in memory at once. */
const WIDTH = 3

interface Upload {
  readonly requests: S3Requests
  readonly send: StoreSender
  readonly call: StoreCall
  readonly partBytes: number
}

/** Uploads a file in parts, of which the object is made under the condition; the upload is aborted when that fails. */
async function uploadParts(
  { requests, send, call, partBytes }: Upload,
  name: string,
  body: Exclude<ObjectBody, Buffer>,
  condition: Condition,
): Promise<Answered | ExpectedFailure> {
  const part = { verb: call.verb, what: call.what }
  const sent = async <T>(request: (signal: AbortSignal) => Promise<T>, bytes = 0): Promise<T> => {
    const answer = await send({ ...part, bytes }, request)
    if (typeof answer === 'string') throw new FleetError('refused', `${call.what}: unexpected answer: ${answer}`)
    return answer
  }
  const upload = await sent((signal) => requests.startUpload(name, signal))
  try {
    const parts = await sendParts(body, partBytes, (number, bytes) =>
      sent((signal) => requests.putPart(upload, number, bytes, signal), bytes.length),
    )
    const answer = await send({ ...part, isOnce: true }, (signal) =>
      requests.completeUpload(upload, parts, condition, signal),
    )
    if (typeof answer !== 'string') return { ...answer, size: body.size }
    await abort()
    return answer
  } catch (error) {
    await abort()
    throw error
  }

  /** What remains of an upload that cannot be aborted is removed by a rule of the bucket (docs/guides/fleet.md). */
  async function abort(): Promise<void> {
    await sent((signal) => requests.abortUpload(upload, signal)).catch(() => undefined)
  }
}

async function sendParts(
  { file, size }: Exclude<ObjectBody, Buffer>,
  smallest: number,
  put: (number: number, bytes: Buffer) => Promise<Part>,
): Promise<Part[]> {
  const partBytes = Math.max(smallest, Math.ceil(size / MAX_PARTS))
  const count = Math.ceil(size / partBytes)
  const parts: Part[] = []
  const handle = await open(file)
  try {
    await runPool([...Array(count).keys()], WIDTH, async (at) => {
      const length = Math.min(partBytes, size - at * partBytes)
      const bytes = Buffer.allocUnsafe(length)
      const { bytesRead } = await handle.read(bytes, 0, length, at * partBytes)
      if (bytesRead !== length) throw new FleetError('refused', `${file} became shorter while it was sent`)
      parts[at] = await put(at + 1, bytes)
    })
  } finally {
    await handle.close()
  }
  return parts
}
