/** Returns a whole number from 0, and below a bound. */
export type Dice = (below: number) => number

/** Creates a small generator of whole numbers, the same on each run. */
export function createDice(seed: number): Dice {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}
