/** Versions and packages checked per step: a few milliseconds, in any order. */
const STRETCH = 1000

/** Work in steps: each `next` does one step, and the last one returns the result. */
export type PacedSteps<Value> = Generator<undefined, Value, undefined>

/** Counts what was looked at. */
export interface Pace {
  /** Whether a stretch is over with this one. */
  isOver(): boolean
}

/** Begins with a whole stretch. */
export function createPace(): Pace {
  let left = STRETCH
  return {
    isOver() {
      if (--left > 0) return false
      left = STRETCH
      return true
    },
  }
}
