import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import fc from 'fast-check'
import { expect } from 'vitest'
import { createContentZip } from '../../../src/features/scanners/small-archive.ts'
import { type NamedContent, pack } from '../../archive/zip/archives.ts'
import { longTest, test } from '../../support/tables.ts'

const REAL = new URL('../../../../shared/data/vex/', import.meta.url).pathname
const IN_MEMORY = { bytes: Infinity, members: Infinity }
const STREAMED = { bytes: 0, members: 0 }

function write(members: readonly NamedContent[], limits?: typeof IN_MEMORY): Buffer[] {
  const chunks: Buffer[] = []
  const zip = createContentZip((chunk) => chunks.push(Buffer.from(chunk)), limits)
  for (const [name, content] of members) zip.add(name, Buffer.from(content))
  zip.finish()
  return chunks
}

const SAMPLE: NamedContent[] = [
  ['index.json', '{"packages":[]}'],
  ['pkg/npm/%40angular/core/vex.json', 'x'.repeat(5000)],
  ['Documents/B.json', '{}'],
  ['documents/a.json', '[]'],
  ['naïve-日本-🐙.json', 'ünïcödé'],
]

test('adm-zip and the streaming writer give the same bytes, in the order in which members were added', () => {
  const [archive = Buffer.alloc(0), ...more] = write(SAMPLE, IN_MEMORY)
  expect(more).toEqual([])
  expect(archive.equals(Buffer.concat(write(SAMPLE, STREAMED)))).toBe(true)
  expect(archive.equals(pack(SAMPLE))).toBe(true)
  expect(write([], IN_MEMORY)).toEqual([pack([])])
})

longTest('adm-zip and the streaming writer give the same bytes for any names and contents', () => {
  const part = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    .filter((text) => text.isWellFormed() && !/[/\\\0]/.test(text) && !/^\.+$/.test(text))
  const name = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
  const content = fc.uint8Array({ minLength: 1, maxLength: 2000 }).map((bytes) => Buffer.from(bytes))
  const members = fc.uniqueArray(fc.tuple(name, content), { selector: ([one]) => one })
  fc.assert(
    fc.property(members, (given) => {
      const inMemory = Buffer.concat(write(given, IN_MEMORY))
      expect(inMemory.equals(Buffer.concat(write(given, STREAMED)))).toBe(true)
    }),
  )
})

test('an archive over a limit is streamed, and members that were collected before are the first in it', () => {
  for (const limits of [
    { bytes: 5000, members: Infinity },
    { bytes: Infinity, members: 3 },
  ]) {
    const chunks = write(SAMPLE, limits)
    expect(chunks.length).toBeGreaterThan(1) // adm-zip gives one
    expect(Buffer.concat(chunks).equals(pack(SAMPLE))).toBe(true)
  }
})

longTest('an archive of 8 MB or of 10,001 members is over the limits of the program', () => {
  const noise = randomBytes((2 << 20) + 1)
  const large = ['a', 'b', 'c', 'd'].map((one): NamedContent => [`${one}.json`, noise])
  const many = Array.from({ length: 10_001 }, (_, i): NamedContent => [`${i}.json`, '{}'])
  for (const members of [large, many]) {
    const chunks = write(members)
    expect(chunks.length).toBeGreaterThan(1) // adm-zip gives one
    expect(Buffer.concat(chunks).equals(pack(members))).toBe(true)
  }
})

test('a member name that adm-zip would change is refused', () => {
  for (const name of ['../up.json', 'a//b.json', 'a\\b.json', './a.json'])
    expect(() => write([[name, '{}']], IN_MEMORY)).toThrow(`adm-zip stores ${name} as`)
})

test.skipIf(!existsSync(REAL))('adm-zip and the streaming writer give the same bytes for real VEX documents', () => {
  const files = readdirSync(REAL).filter((name) => name.endsWith('.json'))
  const members = files.map((name): NamedContent => [name, readFileSync(REAL + name)])
  const streamed = Buffer.concat(write(members, STREAMED))
  expect(Buffer.concat(write(members, IN_MEMORY)).equals(streamed)).toBe(true)
})
