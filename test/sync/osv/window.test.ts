import { expect } from 'vitest'
import type { Bench } from '../../support/mirror.ts'
import { longTest, test } from '../../support/tables.ts'
import { type Doc, mutated } from '../../guard/hostile.ts'
import { DAY, createClock, synced } from '../fixtures.ts'
import { LOWER, approve } from './attacks.ts'

const HOUR = DAY / 24

/** A mirror of 400 records with a clock, and its records that name a fix. */
async function mirrored(env: Record<string, string> = {}) {
  const clock = createClock()
  const made = await synced({ sandbox: { records: 400, large: 0 }, now: clock.now, env })
  const { feed } = made.sandbox
  const fixed = feed.ids().filter((id) => feed.record(id).includes('"fixed"'))
  let stamp = Date.UTC(2026, 4, 1)
  /** Changes records of the feed, an hour later. */
  const change = (ids: readonly string[], mutate: (doc: Doc) => void): void => {
    clock.pass(HOUR)
    const modified = new Date((stamp += 1000)).toISOString()
    for (const id of ids) {
      const both = (doc: Doc): void => {
        mutate(doc)
        doc.modified = modified
      }
      feed.put(id, mutated(feed.record(id), both), modified)
    }
  }
  return { made, clock, fixed, change }
}

/** Lowers the fixes of three records a run until one is refused; returns the number of runs that published. */
async function lowerInSteps({ made, fixed, change }: Awaited<ReturnType<typeof mirrored>>) {
  for (let step = 0; step < 20; step++) {
    change(fixed.slice(step * 3, step * 3 + 3), LOWER)
    const { state } = await made.run('osv')
    if (state === 'quarantined') return step
  }
  return 20
}

const countLedger = ({ store }: Bench): number => store.guardLedger.listLedger('osv', 'affectedLost', 0).length

longTest('small steps of one attack are refused together, however long the refusal waits', async () => {
  const world = await mirrored()
  const { made, clock } = world
  expect(await lowerInSteps(world)).toBeLessThan(8)
  const refused = made.store.runs.readLatestEndedRun('osv')
  expect(refused?.message).toMatch(
    /records have fewer affected versions than before within 7 days, 3 of them in this run/,
  )
  clock.pass(30 * DAY)
  expect(await made.run('osv')).toMatchObject({ state: 'quarantined', facts: { quarantine: refused?.id } })
  expect(await approve(made, refused?.id ?? 0)).toMatchObject({ state: 'complete' })
  expect(countLedger(made)).toBe(0)
})

longTest('an approval accounts for what was approved, and not for what comes after it', async () => {
  const world = await mirrored()
  const { made, change, fixed } = world
  await lowerInSteps(world)
  await approve(made, made.store.runs.readLatestEndedRun('osv')?.id ?? 0)
  change(fixed.slice(60, 63), LOWER)
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(countLedger(made)).toBe(3)
})

test('steps below the limits are named in the facts of the run, and raise no warning', async () => {
  const { made, change, fixed } = await mirrored()
  change(fixed.slice(0, 3), LOWER)
  const { facts, state } = await made.run('osv')
  expect(state).toBe('complete')
  expect(facts).toMatchObject({ doubtsBelowLimits: 3 })
  expect(facts['doubtsBelowLimitsIds']).toHaveLength(3)
  expect(facts).not.toHaveProperty('doubts')
})

longTest('what is further apart than the window is counted by itself', async () => {
  const { made, clock, change, fixed } = await mirrored()
  for (let step = 0; step < 4; step++) {
    change(fixed.slice(step * 10, step * 10 + 10), LOWER)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    clock.pass(8 * DAY)
  }
})

longTest('a record that is again as it was when the window began is not counted any more', async () => {
  const { made, change, fixed } = await mirrored()
  const { feed } = made.sandbox
  const ids = fixed.slice(0, 15)
  const before = new Map(ids.map((id) => [id, JSON.parse(feed.record(id).toString()) as Doc]))
  change(ids, LOWER)
  await made.run('osv')
  expect(countLedger(made)).toBe(15)
  change(ids, (doc) => (doc.affected = before.get(doc.id)?.affected ?? []))
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(countLedger(made)).toBe(0)
})

longTest(
  'fixes that go in one run and come back lower in the next are compared with those of the beginning',
  async () => {
    const { made, change, fixed } = await mirrored()
    const ids = fixed.slice(0, 40)
    const { feed } = made.sandbox
    const before = new Map(ids.map((id) => [id, JSON.parse(feed.record(id).toString()) as Doc]))
    change(ids, (doc) => {
      for (const { ranges = [] } of doc.affected ?? [])
        for (const range of ranges) range.events = range.events.filter((event) => !('fixed' in event))
    })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    change(ids, (doc) => {
      doc.affected = before.get(doc.id)?.affected ?? []
      LOWER(doc)
    })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'quarantined' })
    expect(report.message).toContain('(affectedLost')
  },
)

longTest('removals of many runs are counted together', async () => {
  const { made, clock } = await mirrored()
  const { feed } = made.sandbox
  for (let step = 0; step < 20; step++) {
    clock.pass(HOUR)
    for (const id of feed.ids().slice(0, 4)) feed.delete(id)
    const { state, message } = await made.run('osv')
    if (state !== 'quarantined') continue
    expect(message).toContain('(removed, more than 20 and more than 10 %)')
    expect(step).toBeGreaterThan(8)
    return
  }
  throw new Error('a fifth of the feed was removed, and no run was refused')
})

longTest('a strange record that is reported does not begin the window anew', async () => {
  const { made, change, fixed } = await mirrored()
  const { feed } = made.sandbox
  const ids = fixed.slice(0, 40)
  const before = new Map(ids.map((id) => [id, JSON.parse(feed.record(id).toString()) as Doc]))
  change(ids, (doc) => {
    for (const { ranges = [] } of doc.affected ?? [])
      for (const range of ranges) range.events = range.events.filter((event) => !('fixed' in event))
  })
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  const [strange = ''] = fixed.slice(100)
  const future = mutated(feed.record(strange), (doc) => (doc.modified = '2999-01-01T00:00:00Z'))
  feed.put(strange, future, '2999-01-01T00:00:00Z')
  expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { doubts: 1 } })
  change(ids, (doc) => {
    doc.affected = before.get(doc.id)?.affected ?? []
    LOWER(doc)
  })
  expect((await made.run('osv')).message).toContain('(affectedLost')
})
