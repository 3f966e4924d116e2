import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { documentMember } from '../../../src/store/database/gzip.ts'
import type { Session } from '../../../src/upstream/http/session.ts'
import { type Answer, createOrigin } from '../../support/origin.ts'
import { connect } from './sessions.ts'

const KEY = 'key-of-the-mirror-0123456789'
const CONTENT = Buffer.from(JSON.stringify(Array.from({ length: 4000 }, (_, id) => ({ id }))))
const CAP = 100_000
const ZIPPED = gzipSync(CONTENT)

function turned(at: number): Buffer {
  const bytes = Buffer.from(ZIPPED)
  bytes[bytes.length + at] = (bytes[bytes.length + at] ?? 0) ^ 1
  return bytes
}

const sent =
  (body: Buffer, headers: Record<string, string> = {}, status = 200): Answer =>
  (_request, response) =>
    response.writeHead(status, { 'Content-Length': body.length, ...headers }).end(body)

const zipped = (...parts: Buffer[]): Answer => sent(Buffer.concat(parts), { 'Content-Encoding': 'gzip' })

/** The first bytes of a body that is announced whole, and then the end of the connection. */
const brokenOff: Answer = (_request, response) => {
  response.writeHead(200, { 'Content-Length': CONTENT.length })
  response.write(CONTENT.subarray(0, 1000), () => response.destroy())
}

const inParts: Answer = (_request, response) => {
  for (let at = 0; at < CONTENT.length; at += 9000) response.write(CONTENT.subarray(at, at + 9000))
  response.end()
}

/** A member whose header names a file. */
const named = (name: string): Buffer => {
  const flags = Buffer.from(ZIPPED.subarray(0, 10)).fill(8, 3, 4)
  return Buffer.concat([flags, Buffer.from(`${name}\0`), ZIPPED.subarray(10)])
}

const ANSWERS: [string, Answer, RegExp | null][] = [
  ['plain', sent(CONTENT), null],
  ['in chunks', inParts, null],
  ['empty', sent(Buffer.alloc(0)), null],
  ['gzip', zipped(ZIPPED), null],
  ['gzip of nothing', zipped(gzipSync('')), null],
  ['gzip in two members', zipped(ZIPPED, gzipSync('x')), null],
  ['gzip with zero bytes behind it', zipped(ZIPPED, Buffer.alloc(9)), null],
  ['gzip with other bytes behind it', zipped(ZIPPED, Buffer.from('x')), /gzip body is damaged/],
  ['gzip cut short', zipped(ZIPPED.subarray(0, -1)), /gzip body is damaged/],
  ['gzip cut within its content', zipped(ZIPPED.subarray(0, 500)), /gzip body is damaged/],
  ['gzip with a wrong CRC-32', zipped(turned(-6)), /gzip body is damaged/],
  ['gzip with a wrong size', zipped(turned(-2)), /gzip body is damaged/],
  ['gzip of no bytes', zipped(Buffer.alloc(0)), /gzip body is damaged/],
  ['no gzip', zipped(CONTENT), /gzip body is damaged/],
  ['another encoding', sent(ZIPPED, { 'Content-Encoding': 'br' }), /content encoding br/],
  ['gzip over the cap', zipped(gzipSync(Buffer.alloc(CAP + 1))), /inflates to more than 100000/],
  ['plain over the cap', sent(Buffer.alloc(CAP + 1)), /100001 bytes or more/],
  ['broken off', brokenOff, /broke off after 1000 bytes/],
  ['a part that was not requested', sent(CONTENT, {}, 206), /answered 206/],
  ['another status', sent(CONTENT, {}, 203), /answered 203/],
  ['an unexpected 304', (_, response) => response.writeHead(304).end(), /answered 304/],
  ['a credential', sent(Buffer.from(`[0,"${KEY}"]`)), /the credential/],
  ['a credential in gzip', zipped(gzipSync(`[0,"${KEY}"]`)), /the credential/],
  ['gzip that names its file', zipped(named('all.json')), null],
  ['a credential in the header of gzip', zipped(named(KEY)), /the credential/],
]

/** What a request ends in, and what it costs. */
async function endOf(
  answer: Answer,
  fetch: (session: Session) => Promise<{ content: Buffer; gzip: Buffer }>,
): Promise<unknown> {
  const { url, requests } = await createOrigin(answer)
  const { session } = connect(url, { API_KEY: KEY, RETRIES: '1' })
  const end = await fetch(session).catch((error: unknown) => {
    if (!(error instanceof MirrorError)) throw error
    return `${error.code}: ${error.message}`
  })
  return { end, cost: session.cost, requests: requests.length }
}

const OPTIONS = { maxBytes: CAP, gzip: true }

async function fetched(session: Session): Promise<{ content: Buffer; gzip: Buffer }> {
  const answer = await session.fetchDocument('/x', OPTIONS)
  if (answer.status === 304) throw new Error('304')
  const { body, gzip } = answer
  return { content: body, gzip: documentMember(body, gzip) }
}

async function passed(session: Session): Promise<{ content: Buffer; gzip: Buffer }> {
  const open = () => {
    const pieces: Buffer[] = []
    return { pieces, push: (piece: Buffer) => void pieces.push(Buffer.from(piece)) }
  }
  const answer = await session.passDocument('/x', OPTIONS, open)
  if (answer.status === 304) throw new Error('304')
  return { content: Buffer.concat(answer.reader.pieces), gzip: answer.gzip }
}

describe('a document that is passed on while it arrives', () => {
  test.each(ANSWERS)('ends as one that is fetched as a whole: %s', async (_, answer, error) => {
    const whole = await endOf(answer, fetched)
    expect(await endOf(answer, passed)).toEqual(whole)
    if (error !== null) expect(whole).toMatchObject({ end: expect.stringMatching(error) as string })
    else expect(whole).toMatchObject({ end: { content: expect.any(Buffer) as Buffer } })
  })

  test('is read by another reader after an attempt that broke off', async () => {
    let sentBefore = 0
    const { url } = await createOrigin((request, response) => {
      if (sentBefore++ === 0) brokenOff(request, response)
      else inParts(request, response)
    })
    const { session } = connect(url, { RETRIES: '1' })
    const { content, gzip } = await passed(session)
    expect(content.equals(CONTENT)).toBe(true)
    expect(gunzipSync(gzip).equals(CONTENT)).toBe(true)
    expect(session.cost).toMatchObject({ requests: 2, retries: 1 })
  })

  test('is confirmed by a 304, for which no reader is created', async () => {
    const { url } = await createOrigin((_, response) => response.writeHead(304).end())
    const stored = { etag: '"a"', lastModified: null }
    const asked = connect(url).session.passDocument('/x', { ...OPTIONS, stored }, () => {
      throw new Error('a reader was created')
    })
    expect(await asked).toMatchObject({ status: 304 })
  })
})
