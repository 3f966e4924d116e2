/** Returns a whole number from 0, and below a bound. */
export type Dice = (below: number) => number

/** Creates a small generator of whole numbers, the same on each run. */
export function createDice(seed: number): Dice {
  let state = seed
  return (below) => {
    // In 32 bits: a product beyond 2^53 would lose its low bits, and the numbers would soon repeat.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
