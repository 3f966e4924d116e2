import type { Slice } from '../json/slices.ts'

const WIDTH = 4

/** Pairs of slices in one typed array: 16 bytes each, where objects would take a hundred. */
export interface Rows {
  add(whole: Slice, name: Slice): void
  whole(row: number): Slice
  name(row: number): Slice
  count(): number
}

/** An empty list; it grows by doubling. */
export function createRows(): Rows {
  let numbers = new Uint32Array(1024 * WIDTH)
  let count = 0
  const sliceAt = (at: number): Slice => ({ start: numbers[at] ?? 0, end: numbers[at + 1] ?? 0 })
  return {
    add(whole, name) {
      const at = count++ * WIDTH
      if (at === numbers.length) {
        const larger = new Uint32Array(numbers.length * 2)
        larger.set(numbers)
        numbers = larger
      }
      numbers.set([whole.start, whole.end, name.start, name.end], at)
    },
    whole: (row) => sliceAt(row * WIDTH),
    name: (row) => sliceAt(row * WIDTH + 2),
    count: () => count,
  }
}
