import { setImmediate } from 'node:timers/promises'

/** Work that can be interrupted wherever it yields. */
export type Steps<T> = Generator<undefined, T, undefined>

/** How many small things are done between two yields. */
export const STEP = 256

/** How long the work has the serving thread at a time, milliseconds. */
const STRETCH_MS = 8

/** Does the work in stretches, between which the event loop goes round. */
export async function inStretches<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const end = performance.now() + STRETCH_MS
    do {
      const step = steps.next()
      if (step.done === true) return step.value
    } while (performance.now() < end)
    await setImmediate()
  }
}
