import { expect } from 'vitest'
import type { Bench } from '../../support/mirror.ts'
import { type Doc, type Hostile, HOSTILE, mutated } from '../../guard/hostile.ts'

/** Returns a hostile mutation by its name. */
export const mutationOf = (name: string): Hostile[2] => {
  const found = HOSTILE.find(([one]) => one === name)
  if (found === undefined) throw new Error(`no such mutation: ${name}`)
  return found[2]
}
export const LOWER = mutationOf('the last number of fixes is one lower')

/** Mutates the first records of the feed, with a new stamp or the same. */
export function attack(
  { sandbox: { feed } }: Bench,
  mutate = LOWER,
  records = 30,
  stamp: string | null = '2026-06-15T00:00:00Z',
): void {
  const fixed = feed.ids().filter((id) => feed.record(id).includes('"fixed"'))
  for (const id of fixed.slice(0, records)) {
    const modified = stamp ?? feed.modified(id)
    const both = (doc: Doc): void => {
      mutate(doc)
      if (stamp !== null) doc.modified = stamp
    }
    feed.put(id, mutated(feed.record(id), both), modified)
  }
}

/** As `patchmirror approve RUN` does it. */
export async function approve(made: Bench, run: number) {
  const approved = made.store.quarantine.readQuarantine(run)
  if (approved === null) throw new Error(`run ${run} has nothing in quarantine`)
  const report = await made.run('osv', { kind: 'approve', approved })
  if (report.state === 'complete') expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('approved')
  return report
}
