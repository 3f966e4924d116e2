import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { crc32, gunzipSync, gzipSync, inflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deflatedOf } from '../../../src/base/gzip/member.ts'
import {
  contentOf,
  documentMember,
  gzipMember,
  packContent,
  sizeOf,
  smallMember,
} from '../../../src/store/database/gzip.ts'
import { deflate } from '../../../src/base/gzip/member.ts'

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0
const SAMPLES = ['', '{}', 'text '.repeat(10_000), 'ünïcödé 🐙'].map((text) => Buffer.from(text))
const anything = fc.uint8Array({ maxLength: 2000 })

describe('a gzip member', () => {
  test('of at most 512 bytes can be stored as it is, and is read by gunzip, also in the middle of others', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (content) => {
        const member = smallMember(content)
        expect(member === null).toBe(content.length > 512)
        if (member === null) return
        expect(contentOf(member, content.length).equals(content)).toBe(true)
        const around = packContent(Buffer.from('around'), deflate)
        const joined = gunzipSync(Buffer.concat([around, member, around]))
        expect(joined.equals(Buffer.concat([Buffer.from('around'), content, Buffer.from('around')]))).toBe(true)
      }),
    )
  })

  test('is read by gunzip, and has the same bytes every time', () => {
    fc.assert(
      fc.property(anything, (content) => {
        const member = packContent(content, deflate)
        expect(gunzipSync(member).equals(content)).toBe(true)
        expect(packContent(content, deflate).equals(member)).toBe(true)
      }),
    )
  })

  test.skipIf(!has('gzip', '--version'))('passes the test of the gzip command', () => {
    for (const content of SAMPLES) {
      const member = packContent(content, deflate)
      expect(spawnSync('gzip', ['-t'], { input: member }).status).toBe(0)
      const { stdout } = spawnSync('gzip', ['-dc'], { input: member })
      expect(stdout.equals(content)).toBe(true)
    }
  })

  test.skipIf(!has('python3', '--version'))('is read by Python', () => {
    const script = `import gzip, hashlib, sys
for member in sys.stdin: print(hashlib.sha256(gzip.decompress(bytes.fromhex(member))).hexdigest())`
    const input = SAMPLES.map((content) => packContent(content, deflate).toString('hex')).join('\n')
    const { stdout } = spawnSync('python3', ['-c', script], { input, encoding: 'utf8' })
    const digests = SAMPLES.map((content) => createHash('sha256').update(content).digest('hex'))
    expect(stdout.trim().split('\n')).toEqual(digests)
  })

  test('contains its deflate stream unchanged, and returns it', () => {
    const content = Buffer.from('streams are never recompressed')
    const stream = deflate(content)
    const member = gzipMember(stream, crc32(content), content.length)
    expect(deflatedOf(member).equals(stream)).toBe(true)
    expect(inflateRawSync(deflatedOf(member)).equals(content)).toBe(true)
    expect(member.length).toBe(stream.length + 18)
  })

  test('has no date and no name', () => {
    const member = packContent(Buffer.from('x'), deflate)
    expect([...member.subarray(0, 10)]).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
  })
})

describe('a document received as gzip', () => {
  const content = Buffer.from('[{"id":"ROOT-1"}]')

  test('is stored unchanged when it is one member of exactly this content', () => {
    const came = gzipSync(content, { level: 9 })
    expect(documentMember(content, came)).toBe(came)
    expect(sizeOf(came)).toBe(content.length)
  })

  test('is packed again when it has several members, or is not gzip', () => {
    const parts = Buffer.concat([gzipSync(content.subarray(0, 5)), gzipSync(content.subarray(5))])
    for (const came of [parts, null]) {
      const kept = documentMember(content, came)
      expect(contentOf(kept, sizeOf(kept)).equals(content)).toBe(true)
      expect(kept.equals(packContent(content, deflate))).toBe(true)
    }
  })
})

describe('reading a gzip member', () => {
  test('gives exactly what was packed', () => {
    fc.assert(
      fc.property(anything, (content) => {
        expect(contentOf(packContent(content, deflate), content.length).equals(content)).toBe(true)
      }),
    )
  })

  test('throws when the size is larger or smaller, by little or by much', () => {
    const member = packContent(Buffer.alloc(1000, 'x'), deflate)
    for (const size of [0, 999, 1001, 100_000])
      expect(() => contentOf(member, size)).toThrow('stored content is damaged')
  })

  test('throws for any changed byte, or gives the same content', () => {
    const content = Buffer.from('{"id":"ROOT-1","modified":"2026-05-01T00:00:00Z"}')
    const member = packContent(content, deflate)
    for (let at = 0; at < member.length; at++) {
      const turned = Buffer.from(member)
      turned[at] = (turned[at] ?? 0) ^ 0xff
      let read: Buffer = content
      try {
        read = contentOf(turned, content.length)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
      }
      expect(read.equals(content), `byte ${at}`).toBe(true)
    }
  })

  test('throws for a member that is cut short anywhere', () => {
    const content = Buffer.from('cut short')
    const member = gzipSync(content)
    for (let length = 0; length < member.length; length++) {
      expect(() => contentOf(member.subarray(0, length), content.length), `${length}`).toThrow()
    }
  })
})
