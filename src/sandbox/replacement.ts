import { constants, gzipSync } from 'node:zlib'
import type { Fault } from './fault.ts'
import type { NegotiatedAnswer } from './negotiate.ts'
import { refusal } from './refusal.ts'
import { JSON_TYPE } from './representation.ts'

/** Answers that have nothing to do with what was asked for. */
export function replacement(fault: Fault): NegotiatedAnswer | undefined {
  if (fault.kind === 'status') {
    const plain = refusal(fault.status, `sandbox fault: status ${fault.status}`)
    const body = fault.body === undefined ? undefined : Buffer.from(fault.body)
    const answer =
      body === undefined ? plain : { ...plain, length: body.length, body: () => [body] }
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
