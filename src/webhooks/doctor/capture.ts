import { MirrorError } from '../../base/errors.ts'

/** A captured request: header names as written, in order, and the body's bytes. */
export interface Capture {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

/**
 * Reads a captured delivery: the text of an HTTP request (with its request line or without), or JSON with `headers` (an
 * object, or a list of pairs) and `body` (text) or `bodyBase64`. Throws `usage`.
 */
export function readCapture(file: Buffer): Capture {
  return /^\s*\{/.test(file.subarray(0, 64).toString('latin1')) ? fromJson(file) : fromHttp(file)
}

function fromJson(file: Buffer): Capture {
  const value = parseObject(file.toString('utf8'))
  const headers = headersOf(value['headers'] ?? value['rawHeaders'])
  const { body, bodyBase64 } = value
  if (typeof bodyBase64 === 'string') return { headers, body: Buffer.from(bodyBase64, 'base64') }
  if (typeof body === 'string') return { headers, body: Buffer.from(body) }
  if (body === undefined || body === null) throw unusable('it has no "body"')
  throw unusable('its "body" is parsed, and the signature is over the bytes')
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown> // it begins with {
  } catch (error) {
    throw unusable('it begins with { but is not JSON', error)
  }
}

function headersOf(value: unknown): [string, string][] {
  if (typeof value !== 'object' || value === null) throw unusable('it has no "headers"')
  return pairsIn(value).flatMap(([name, given]) => {
    const values: unknown[] = Array.isArray(given) ? given : [given]
    return values.map((one): [string, string] => {
      const isPlain = typeof one === 'string' || typeof one === 'number'
      if (typeof name !== 'string' || !isPlain) throw unusable('its headers are not names and values')
      return [name, String(one)]
    })
  })
}

/** Returns the names and values of an object, of a list of pairs, or of a list in which they alternate. */
function pairsIn(value: object): [unknown, unknown][] {
  if (!Array.isArray(value)) return Object.entries(value)
  const isFlat = value.every((one) => typeof one === 'string')
  if (isFlat) return value.flatMap((name, i) => (i % 2 === 0 ? [[name, value[i + 1]] as [unknown, unknown]] : []))
  return value.map((pair: unknown) => (Array.isArray(pair) ? [pair[0], pair[1]] : [null, null]))
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/

function fromHttp(file: Buffer): Capture {
  const [end, gap] = endOfHead(file)
  const lines = file.subarray(0, end).toString('latin1').split(/\r?\n/)
  const head = HEADER.test(lines[0] ?? '') ? lines : lines.slice(1)
  const headers = head
    .filter((line) => line !== '')
    .map((line): [string, string] => {
      const [, name, value] = HEADER.exec(line.replace(/^> /, '')) ?? []
      if (name === undefined || value === undefined) {
        throw unusable('a line before the first empty one is not "Name: value"')
      }
      return [name, value]
    })
  const body = file.subarray(end + gap)
  const isChunked = headers.some(([name, value]) => /^transfer-encoding$/i.test(name) && /\bchunked\b/i.test(value))
  return { headers, body: (isChunked ? joinChunks(body) : null) ?? body }
}

/** Where the head ends, and the length of the empty line after it. */
function endOfHead(file: Buffer): [number, number] {
  const ends = ['\r\n\r\n', '\n\n'].map((gap) => [file.indexOf(gap), gap.length] as const)
  const [first] = ends.filter(([at]) => at >= 0).sort(([a], [b]) => a - b)
  if (first === undefined) throw unusable('there is no empty line between headers and body')
  return [first[0], first[1]]
}

/** Joins a body that was sent in chunks; null where it is none. */
function joinChunks(body: Buffer): Buffer | null {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const line = body.indexOf('\r\n', at)
    const size = line < 0 ? null : /^[\da-f]{1,8}/i.exec(body.subarray(at, line).toString('latin1'))
    if (size === null) return null
    const length = parseInt(size[0], 16)
    if (length === 0) return Buffer.concat(parts)
    parts.push(body.subarray(line + 2, line + 2 + length))
    at = line + 2 + length + 2
  }
}

function unusable(why: string, cause?: unknown): MirrorError {
  const text =
    `the file is no captured request: ${why}. It takes the text of an HTTP request ` +
    '(headers, an empty line, the body), or JSON with "headers" and "body" or "bodyBase64"'
  return new MirrorError('usage', text, { cause })
}
