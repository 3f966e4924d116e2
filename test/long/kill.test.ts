import { expect, test } from 'vitest'
import { createDice } from '../support/dice.ts'
import { createBench, differences } from '../support/mirror.ts'
import { ARCHIVE, disagreements, verify } from '../sync/fixtures.ts'
import { findingsAfterKill, killAt, leftovers } from '../sync/killing.ts'

/** Where to kill: the phase, how often it may be said before, and how the run must go so that it comes there. */
const PLACES = [
  { phase: 'open', most: 1, options: {}, changes: 3 },
  { phase: 'archive', most: 6, options: { full: true }, changes: 3 },
  { phase: 'ingest', most: 1, options: { full: true }, changes: 100 },
  { phase: 'ingest', most: 1, options: { kind: 'reconcile' }, changes: 20 },
  { phase: 'records', most: 60, options: {}, changes: 60 },
  { phase: 'publish', most: 1, options: {}, changes: 40 },
  { phase: 'publish', most: 1, options: { full: true }, changes: 300 },
  { phase: 'publish', most: 1, options: { kind: 'reconcile' }, changes: 40 },
] as const

test('sixty kills at any point leave a mirror that reads well and heals in one run', async () => {
  const made = await createBench({ sandbox: { records: 1000, large: 0 } })
  const { sandbox, dir, store } = made
  const dice = createDice(7)
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  let kills = 0
  for (let round = 0; kills < 60 && round < 200; round++) {
    const place = PLACES[round % PLACES.length] ?? PLACES[0]
    sandbox.feed.change(place.changes)
    sandbox.feed.changeSilently(dice(4))
    sandbox.feed.add(dice(6))
    sandbox.feed.remove(dice(4))
    const bytes = dice(sandbox.feed.archive().length)
    if (dice(3) === 0) sandbox.faults.set(ARCHIVE, { kind: 'truncate', bytes }, { times: 1 })
    if (
      await killAt(sandbox, dir, place.phase, 1 + dice(place.most), {
        ...place.options,
        running: true,
      })
    )
      kills++
    sandbox.faults.clear()
    expect(await findingsAfterKill(dir)).toEqual([])
    if (dice(3) === 0) continue // now and then the next one is killed too
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expect(disagreements(store, dir)).toEqual([])
    expect(leftovers(dir).filter((name) => !name.includes('.part'))).toEqual([])
    expect((await verify(dir)).structure).toEqual([])
  }
  expect(kills).toBe(60)
  await made.close()
})
