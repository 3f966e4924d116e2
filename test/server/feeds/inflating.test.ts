import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createInflating } from '../../../src/server/feeds/fast-records.ts'
import { packContent } from '../../../src/store/database/gzip.ts'
import { deflate } from '../../../src/base/gzip/member.ts'

const CONTENTS = Array.from({ length: 30 }, (_, i) => Buffer.from(`record ${i} `.repeat(1 + i * 7)))
const pack = (content: Buffer): Buffer => packContent(content, deflate)

test('returns the contents of all members in any order, and of more that come later', () => {
  const inflating = createInflating()
  const first = CONTENTS.map((content, i) => inflating(`${i}`, pack(content), content.length))
  expect(first.toReversed().map((content) => content())).toEqual(CONTENTS.toReversed())
  const later = CONTENTS.map((content, i) => inflating(`${i}`, pack(content), content.length))
  expect(later.map((content) => content())).toEqual(CONTENTS)
  expect(first.map((content) => content())).toEqual(CONTENTS)
})

test('returns every other content when one is damaged, and what another program packed', () => {
  const inflating = createInflating()
  const members = CONTENTS.map((content) => pack(content))
  members[3]?.fill(0, 12, 20)
  members[5] = gzipSync(CONTENTS[5] ?? '')
  members[6]?.writeUInt32LE(1, members[6].length - 8) // its CRC-32
  const contents = members.map((member, i) => inflating(`${i}`, member, CONTENTS[i]?.length ?? 0))
  for (const [i, content] of contents.entries()) {
    if (i === 3 || i === 6) expect(content).toThrow()
    else expect(content()).toEqual(CONTENTS[i])
  }
})

test('refuses content of another size than is recorded, also alone', () => {
  const inflating = createInflating()
  const [one = Buffer.alloc(0), two = Buffer.alloc(0)] = CONTENTS
  const both = [inflating('one', pack(one), one.length + 1), inflating('two', pack(two), two.length)]
  expect(both[0]).toThrow(/inflates to/)
  expect(both[1]?.()).toEqual(two)
  expect(inflating('one', pack(one), one.length - 1)).toThrow()
})

test('returns the content of each member of a name, as when the snapshot moves in between', () => {
  const inflating = createInflating()
  const [before = Buffer.alloc(0), after = Buffer.alloc(0), other = Buffer.alloc(0)] = CONTENTS.slice(7)
  const asked = [before, after, before, other].map((content, i) =>
    inflating(i === 3 ? 'b' : 'a', pack(content), content.length),
  )
  expect(asked.map((content) => content())).toEqual([before, after, before, other])
})

test('returns contents that keep no more than 64 KiB and a record of others in memory, of any number of bytes', () => {
  const inflating = createInflating()
  const contents = Array.from({ length: 300 }, (_, i) => Buffer.alloc(10_000, i % 256))
  const all = contents.map((content, i) => inflating(`${i}`, pack(content), content.length))
  for (const [i, content] of all.entries()) {
    expect(content()).toEqual(contents[i])
    expect(content().buffer.byteLength).toBeLessThan(2 ** 16 + 10_100)
  }
})

test('inflates once what is asked for several times', () => {
  const inflating = createInflating()
  const [content = Buffer.alloc(0), other = Buffer.alloc(0)] = CONTENTS.slice(5)
  const asked = [0, 1, 2].map(() => inflating('a', pack(content), content.length))
  const besides = inflating('b', pack(other), other.length)
  const [first, ...more] = asked.map((one) => one())
  expect(first).toEqual(content)
  for (const one of more) expect(one).toBe(first)
  expect(besides()).toEqual(other)
})
