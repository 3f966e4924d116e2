import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { createPacker } from '../../../src/base/gzip/pieces.ts'
import { compressAgain, createCompressor, createMemory, recipeOf } from '../../../src/features/bundles/thin/encode.ts'

/** An index of so many records: larger than what the store compresses at once. */
function contentOf(records: number): Buffer {
  const lines = Array.from({ length: records }, (_, i) => {
    return `["ID-${i}","${createHash('sha256').update(String(i)).digest('hex').slice(0, 20)}"]`
  })
  return Buffer.from(lines.join(',\n'))
}

function packedOf(content: Buffer): Buffer {
  const packer = createPacker()
  packer.push(content)
  return packer.end()
}

longTest.each([
  ['small', contentOf(10)],
  ['larger than a block', contentOf(30_000)],
])('the recipe of a document that is %s makes its bytes again, however it was compressed', (_, content) => {
  const compress = createCompressor()
  const forms = [
    ['packed', packedOf(content)],
    ...[6, 9, 1, 4].map((level) => [`gzip ${level}`, gzipSync(content, { level })] as const),
    ['stored', gzipSync(content, { memLevel: 4 })],
  ] as const
  const found = forms.map(([, packed]) => recipeOf({ compress }, { packed, content, path: null }))
  const names = found.map(({ kind, gzip }) => (gzip === null ? kind : `${kind} ${gzip.level}`))
  // A small document has the same bytes as the store's where the levels do not differ.
  if (content.length > 1 << 20) expect(names).toEqual(forms.map(([name]) => name))
  const wrong = found.filter((recipe, i) => {
    const packed = forms[i]?.[1] ?? Buffer.alloc(0)
    return recipe.kind !== 'stored' && [compress, compressAgain].some((make) => !make(recipe, content).equals(packed))
  })
  expect(wrong).toEqual([])
})

test('what is compressed against is made once, as far as there is room', () => {
  const remembered = createMemory()
  let made = 0
  const make = (bytes: number) => () => Buffer.alloc(bytes, ++made)
  const small = remembered('small', make(10))
  expect(remembered('small', make(10))).toBe(small)
  expect(remembered('none', () => null)).toBeNull()
  expect(remembered('large', make(2 ** 24))).not.toBe(remembered('large', make(2 ** 24)))
  expect(made).toBe(3)
})
