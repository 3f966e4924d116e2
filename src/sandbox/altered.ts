import type { Fault } from './fault.ts'
import type { NegotiatedAnswer } from './negotiate.ts'
import { createRandom } from './random.ts'

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

function flip(
  bytes: Buffer,
  { offset, length = 16 }: { offset?: number; length?: number },
): Buffer {
  const asked = offset ?? Math.floor(bytes.length / 2)
  const start = Math.max(0, asked < 0 ? bytes.length + asked : asked)
  for (let i = start; i < Math.min(start + length, bytes.length); i++) {
    bytes[i] = (bytes[i] ?? 0) ^ 0xff
  }
  return bytes // a copy made for this answer
}

function wrongRange(
  answer: NegotiatedAnswer,
  how: 'shifted' | 'bytes' | 'total',
): NegotiatedAnswer {
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
