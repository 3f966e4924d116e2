/** A seeded stream of pseudo-random numbers: the same seed gives the same numbers on any machine. */
export interface Random {
  /** 0 ≤ x < 1. */
  next(): number
  /** A whole number, 0 ≤ x < below. */
  int(below: number): number
  /** A whole number, from ≤ x ≤ to. */
  between(from: number, to: number): number
  chance(probability: number): boolean
  /** One of the items; the list must not be empty. */
  pick<T>(items: readonly T[]): T
}

/**
 * A Weyl sequence through a 32-bit mixer. `stream` gives independent streams of one seed, so that
 * record 7 is the same whether ten records are generated or a million.
 */
export function createRandom(seed: number, stream = 0): Random {
  let state = (mix(Math.trunc(seed) ^ 0x5bd1e995) + mix(stream + 0x27d4eb2f)) | 0
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0
    return mix(state) / 0x1_0000_0000
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    next,
    int,
    between: (from, to) => from + int(to - from + 1),
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new RangeError('nothing to pick from')
      return items[int(items.length)] as (typeof items)[number] // the index is below the length
    },
  }
}

function mix(value: number): number {
  let x = value | 0
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}
