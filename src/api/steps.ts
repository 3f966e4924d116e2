import { createFairQueue } from './turns.ts'

/** Work that can be interrupted wherever it yields. */
export type Steps<T> = Generator<undefined, T, undefined>

/** How many small things are done between two yields. */
export const STEP = 256

/** How long the work has the serving thread at a time, milliseconds. */
const STRETCH_MS = 8

const turns = createFairQueue()

/** Does the work in stretches, one of all such work in a round of the event loop. */
export async function inStretches<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    await turns.next()
    const end = performance.now() + STRETCH_MS
    do {
      const step = steps.next()
      if (step.done === true) return step.value
    } while (performance.now() < end)
  }
}
