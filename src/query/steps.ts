/** Versions and packages that are looked at in one stretch: a few milliseconds, whatever their order. */
const STRETCH = 1000

/** Work in steps: each `next` does a stretch of it, and the last one tells what it came to. */
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
