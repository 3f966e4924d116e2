import fc from 'fast-check'

/** Surrogates are half of a character, none of their own. */
const SURROGATES = { first: 0xd800, count: 0x800 }

/**
 * Any character, as a unit of `fc.string`: of every code point, now and then of ASCII. The library's own unit `binary` has
 * the same ones from a table of them all, 86 MB that each process would keep.
 */
export const ANY_CHARACTER: fc.Arbitrary<string> = fc
  .oneof(
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 0x7f }) },
    { weight: 19, arbitrary: fc.integer({ min: 0, max: 0x10_ff_ff - SURROGATES.count }) },
  )
  .map((at) => String.fromCodePoint(at < SURROGATES.first ? at : at + SURROGATES.count))
