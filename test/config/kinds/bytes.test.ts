import { expect, test } from 'vitest'
import { parseBytes } from '../../../src/config/kinds/bytes.ts'

test.each([
  ['0', 0],
  ['1000', 1000],
  ['512 B', 512],
  ['512 MB', 512_000_000],
  ['512MB', 512_000_000],
  ['4 GiB', 4 * 2 ** 30],
  ['1.5 KiB', 1536],
  ['2 kb', 2000],
  ['1 TB', 1e12],
  ['1 TiB', 2 ** 40],
  ['0.001 KB', 1],
  ['0.07 MB', 70_000],
])('%j is %d bytes', (text, size) => {
  expect(parseBytes(text)).toBe(size)
})

test.each(['', 'MB', '-1 MB', '1 PB', '1 MBit', '1,5 GB', '1e3', '0x10', '12 12', '1.', '.5 GB'])(
  '%j is refused as a size',
  (text) => {
    expect(parseBytes(text)).toBeNull()
  },
)
