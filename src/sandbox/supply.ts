import type { Parts } from './edits.ts'
import { generateRecord } from './generate.ts'
import { store } from './stored.ts'

/** Generates records one after the other, never an id that is already there. */
export function createSupply({ options, records, clock, publisher }: Parts): {
  generate: () => Promise<void>
  next: (at: number) => string
} {
  let i = 0
  const take = (lastModified: number, at?: number): string => {
    for (;;) {
      const odd = options.records >= 50
      const stamp = at === undefined ? {} : { at }
      const { id, modified, bytes } = generateRecord({ ...options, odd, ...stamp }, i++)
      if (records.has(id)) continue
      records.set(id, store(id, modified, bytes, lastModified))
      return id
    }
  }
  return {
    next: (at) => take(at, options.now()),
    async generate() {
      while (records.size < options.records) {
        take(clock.current())
        if (records.size % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      publisher.publish([])
    },
  }
}
