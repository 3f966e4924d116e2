import type { Fault } from './fault.ts'
import { type NegotiatedAnswer, refusal } from '../http/negotiate.ts'
import { createRandom } from '../feed/random.ts'
import { constants, gzipSync } from 'node:zlib'
import { JSON_TYPE } from '../feed/representation.ts'

/** The answer with another body or range than it should have; Content-Length stays true. */
export function altered(fault: Fault, answer: NegotiatedAnswer): NegotiatedAnswer {
  if (fault.kind === 'wrongRange') return wrongRange(answer, fault.how ?? 'shifted')
  if (fault.kind === 'garbage') return withBody(answer, noise(fault.bytes ?? 4096))
  if (fault.kind === 'empty') return withBody(answer, Buffer.alloc(0))
  if (fault.kind === 'corrupt') {
    return { ...answer, body: () => [flip(Buffer.concat([...answer.body()]), fault)] }
  }
  if (fault.kind === 'contentType') {
    const { 'Content-Type': _type, ...headers } = answer.headers
    return {
      ...answer,
      headers: { ...headers, ...(fault.type !== '' && { 'Content-Type': fault.type }) },
    }
  }
  return answer
}

function withBody(answer: NegotiatedAnswer, body: Buffer): NegotiatedAnswer {
  const { 'Content-Encoding': _coding, 'Content-Range': _range, ...headers } = answer.headers
  return { status: 200, headers, length: body.length, body: () => [body] }
}

function noise(bytes: number): Buffer {
  const random = createRandom(bytes)
  return Buffer.from(Array.from({ length: bytes }, () => random.int(256)))
}

function flip(bytes: Buffer, { offset, length = 16 }: { offset?: number; length?: number }): Buffer {
  const asked = offset ?? Math.floor(bytes.length / 2)
  const start = Math.max(0, asked < 0 ? bytes.length + asked : asked)
  for (let i = start; i < Math.min(start + length, bytes.length); i++) {
    bytes[i] = (bytes[i] ?? 0) ^ 0xff
  }
  return bytes // a copy made for this answer
}

function wrongRange(answer: NegotiatedAnswer, how: 'shifted' | 'bytes' | 'total'): NegotiatedAnswer {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(String(answer.headers['Content-Range']))
  if (answer.status !== 206 || match === null) return answer
  const [start, end, total] = match.slice(1).map(Number) as [number, number, number] // three groups
  const range = (from: number, to: number, of: number): NegotiatedAnswer => {
    const headers = { ...answer.headers, 'Content-Range': `bytes ${from}-${to}/${of}` }
    return { ...answer, headers }
  }
  if (how === 'shifted') return range(start + 1, end + 1, total + 1)
  if (how === 'total') return range(start, end, total + 1000)
  const turned = (): Buffer[] => [Buffer.concat([...answer.body()]).reverse()]
  return { ...answer, body: turned }
}

/** Answers that have nothing to do with what was asked for. */
export function replacement(fault: Fault): NegotiatedAnswer | undefined {
  if (fault.kind === 'status') {
    const plain = refusal(fault.status, `sandbox fault: status ${fault.status}`)
    const body = fault.body === undefined ? undefined : Buffer.from(fault.body)
    const answer = body === undefined ? plain : { ...plain, length: body.length, body: () => [body] }
    return { ...answer, headers: { ...answer.headers, ...fault.headers } }
  }
  if (fault.kind === 'redirect') {
    return {
      ...page(fault.status ?? 302, 'text/plain', Buffer.from('elsewhere')),
      headers: { Location: fault.location, 'Content-Type': 'text/plain' },
    }
  }
  if (fault.kind === 'html') {
    return page(200, 'text/html; charset=utf-8', Buffer.from(HTML))
  }
  if (fault.kind === 'body') {
    const answer = page(200, fault.type ?? 'application/octet-stream', Buffer.from(fault.body))
    return { ...answer, headers: { ...answer.headers, ...fault.headers } }
  }
  if (fault.kind === 'gzipBomb') {
    const answer = page(200, 'application/json', gzipOfZeros(fault.bytes))
    return { ...answer, headers: { ...answer.headers, 'Content-Encoding': 'gzip' } }
  }
  if (fault.kind === 'hugeDocument') return flood(fault.bytes ?? 2 ** 31, fault.declared ?? true)
  return undefined
}

/** The head of an SBOM and then blanks, all of them one buffer: its size costs no memory. */
function flood(bytes: number, declared: boolean): NegotiatedAnswer {
  const head = Buffer.from('{"bomFormat":"CycloneDX","specVersion":"1.6","components":[')
  const blanks = Buffer.alloc(1 << 20, ' ')
  function* body(): Generator<Buffer> {
    yield head.subarray(0, bytes)
    for (let left = bytes - head.length; left > 0; left -= blanks.length) {
      yield blanks.subarray(0, left)
    }
  }
  const coding: Record<string, string> = declared ? {} : { 'Transfer-Encoding': 'chunked' }
  return { status: 200, headers: { 'Content-Type': JSON_TYPE, ...coding }, length: bytes, body }
}

const HTML =
  '<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in to continue</h1></body></html>\n'

function page(status: number, type: string, body: Buffer): NegotiatedAnswer {
  return { status, headers: { 'Content-Type': type }, length: body.length, body: () => [body] }
}

/** Members of 16 MiB each, one after the other, which every gunzip takes as one stream. */
function gzipOfZeros(bytes: number): Buffer {
  const block = 1 << 24
  const level = { level: constants.Z_BEST_COMPRESSION }
  const full = bytes >= block ? gzipSync(Buffer.alloc(block), level) : Buffer.alloc(0)
  const parts = Array.from({ length: Math.floor(bytes / block) }, () => full)
  parts.push(gzipSync(Buffer.alloc(bytes % block), level))
  return Buffer.concat(parts)
}
