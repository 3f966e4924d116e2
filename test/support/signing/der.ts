/** Returns one DER value: its tag, its length and its content. */
export function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

function lengthOf(length: number): Buffer {
  if (length < 128) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  return Buffer.concat([Buffer.from([128 + bytes.length]), bytes])
}

/** Returns a sequence. */
export function sequence(...contents: readonly Buffer[]): Buffer {
  return der(0x30, ...contents)
}

/** Returns an object identifier, such as `2.5.29.17`. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const low = [value % 128]
  for (let left = Math.floor(value / 128); left > 0; left = Math.floor(left / 128)) low.unshift(128 + (left % 128))
  return low
}

/** Returns a positive integer of a few bytes. */
export function integer(value: number): Buffer {
  return der(0x02, Buffer.from([value]))
}

/** Returns a text in UTF-8. */
export function utf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text))
}

/** Returns a time in UTC. */
export function utcTime(at: Date): Buffer {
  const digits = at.toISOString().replace(/\D/g, '').slice(2, 14)
  return der(0x17, Buffer.from(`${digits}Z`))
}

/** Returns bits of whole bytes. */
export function bits(content: Buffer): Buffer {
  return der(0x03, Buffer.from([0]), content)
}

/** Returns bytes. */
export function octets(...contents: readonly Buffer[]): Buffer {
  return der(0x04, ...contents)
}

/** Returns a set. */
export function setOf(...contents: readonly Buffer[]): Buffer {
  return der(0x31, ...contents)
}

/** Returns a time in UTC with four digits of the year. */
export function generalizedTime(at: Date): Buffer {
  return der(0x18, Buffer.from(`${at.toISOString().replace(/\D/g, '').slice(0, 14)}Z`))
}

/** The algorithm of signatures: ECDSA with SHA-256. */
export const ECDSA = sequence(oid('1.2.840.10045.4.3.2'))
