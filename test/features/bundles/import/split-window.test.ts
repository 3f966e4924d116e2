import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAhead } from '../../../../src/features/bundles/import/split-reader.ts'

const bytes = Buffer.from(Array.from({ length: 700_001 }, (_, i) => (i * 2_654_435_761) >>> 24))

test('a window that reads ahead returns the right bytes at any position and length', async () => {
  const place = fc.record({ at: fc.nat(700_000), length: fc.nat(100_000), given: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(place, { maxLength: 12 }), async (places) => {
      const source = readAhead({
        size: bytes.length,
        read: (at, length, into) => {
          if (at + length > bytes.length) return Promise.reject(new Error('over the end'))
          const target = into ?? Buffer.alloc(length)
          bytes.copy(target, 0, at, at + length)
          return Promise.resolve(target.subarray(0, length))
        },
      })
      const read = places.map(async ({ at, length, given }) => {
        if (at + length > bytes.length) {
          await expect(source.read(at, length)).rejects.toThrow('over the end')
          return
        }
        const into = given ? Buffer.alloc(length) : undefined
        const found = await source.read(at, length, into)
        expect(found.equals(bytes.subarray(at, at + length))).toBe(true)
        found.fill(0) // what was given is the caller's: nobody else sees this
      })
      await Promise.all(read)
    }),
    { numRuns: 60 },
  )
})
