import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { combineCrc32c, crc32c, googHash } from '../../../src/archive/zip/crc32c.ts'

/** The definition, bit by bit: slow and beyond doubt. */
function bitwise(data: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of data) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

describe('crc32c', () => {
  test('gives the check values of RFC 3720, appendix B.4', () => {
    const ascending = Buffer.from(Array.from({ length: 32 }, (_, i) => i))
    expect(crc32c(Buffer.alloc(32)).toString(16)).toBe('8a9136aa')
    expect(crc32c(Buffer.alloc(32, 0xff)).toString(16)).toBe('62a8ab43')
    expect(crc32c(ascending).toString(16)).toBe('46dd794e')
    expect(crc32c(Buffer.from(ascending).reverse()).toString(16)).toBe('113fdb5c')
  })

  test('gives the catalogue check value for 123456789, and 0 for nothing', () => {
    expect(crc32c(Buffer.from('123456789')).toString(16)).toBe('e3069283')
    expect(crc32c(Buffer.alloc(0))).toBe(0)
  })

  test('agrees with the bitwise definition at any length and any alignment', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(9), (data, shift) => {
        const moved = new Uint8Array(data.length + shift)
        moved.set(data, shift)
        expect(crc32c(moved.subarray(shift))).toBe(bitwise(data))
      }),
    )
  })

  test('of two pieces is combined into that of both, at any length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(300), (data, cut) => {
        const first = data.subarray(0, cut)
        const second = data.subarray(cut)
        expect(combineCrc32c(crc32c(first), crc32c(second), second.length)).toBe(crc32c(data))
      }),
    )
    const zeros = Buffer.alloc(3_000_001)
    expect(combineCrc32c(crc32c(Buffer.from('x')), crc32c(zeros), zeros.length)).toBe(
      crc32c(Buffer.concat([Buffer.from('x'), zeros])),
    )
  })

  test('continued in pieces equals the whole', () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 })
    fc.assert(
      fc.property(pieces, (parts) => {
        const continued = parts.reduce((crc, part) => crc32c(part, crc), 0)
        expect(continued).toBe(crc32c(Buffer.concat(parts)))
      }),
    )
  })

  test('is written as x-goog-hash writes it: base64 of the four big-endian bytes', () => {
    expect(googHash(0xe3069283)).toBe('crc32c=4waSgw==')
    expect(googHash(0)).toBe('crc32c=AAAAAA==')
  })
})
