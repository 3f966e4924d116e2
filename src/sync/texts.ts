/** Bytes `from` to `to` (exclusive) of a buffer. */
export interface TextSlice {
  bytes: Buffer
  from: number
  to: number
}

/** Texts one after the other in one buffer, by number. */
export interface Texts {
  /** The number under which `at` gives the text back. */
  add(text: TextSlice): number
  /** As `add`; a text equal to the one before shares its number. */
  append(text: TextSlice): number
  at(number: number): string
  equals(number: number, bytes: Buffer, from: number, to: number): boolean
  count(): number
}

/** No text yet; room for `bytes` of UTF-8 to begin with. */
export function createTexts(bytes: number): Texts {
  let text = Buffer.allocUnsafeSlow(Math.max(64, bytes))
  let ends = new Uint32Array(1024)
  let count = 0
  let used = 0
  const startOf = (number: number): number => (number === 0 ? 0 : (ends[number - 1] ?? 0))
  const add = ({ bytes: from, from: start, to }: TextSlice): number => {
    const length = to - start
    if (used + length > text.length) text = grown(text, used + length)
    for (let i = 0; i < length; i++) text[used + i] = from[start + i] ?? 0 // short: no call pays
    used += length
    if (count === ends.length) ends = doubled(ends)
    ends[count] = used
    return count++
  }
  const equals = (number: number, other: Buffer, from: number, to: number): boolean => {
    const start = startOf(number)
    const length = to - from
    if ((ends[number] ?? 0) - start !== length) return false
    for (let i = 0; i < length; i++) if (text[start + i] !== other[from + i]) return false
    return true
  }
  return {
    add,
    append(slice) {
      const last = count - 1
      return last >= 0 && equals(last, slice.bytes, slice.from, slice.to) ? last : add(slice)
    },
    at: (number) => text.toString('utf8', startOf(number), ends[number]),
    equals,
    count: () => count,
  }
}

/** The same numbers and as much room again. */
export function doubled(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const twice = new Uint32Array(array.length * 2)
  twice.set(array)
  return twice
}

function grown(buffer: Buffer<ArrayBuffer>, atLeast: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(Math.max(atLeast, buffer.length * 2))
  buffer.copy(larger)
  return larger
}
