import fc from 'fast-check'
import { expect } from 'vitest'
import { createWorld, tagged } from './coalescing.ts'

const DAY = 86_400_000

type Step =
  | { does: 'arrive'; tag: string | null; told: boolean }
  | { does: 'pass'; ms: number }
  | { does: 'restart' }
  | { does: 'breakInbox'; yes: boolean }

const POISON = 'poison'
const INVISIBLE = 'invisible'
const LATE = 'late'

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('arrive' as const),
      tag: fc.constantFrom('a', 'b', 'c', LATE, INVISIBLE, POISON, null),
      told: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('pass' as const),
      ms: fc.oneof(fc.nat(3_000), fc.nat(700_000)),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ does: 'restart' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('breakInbox' as const), yes: fc.boolean() }),
  },
)

const outcome = fc.oneof(
  { weight: 5, arbitrary: fc.record({ ms: fc.nat(5_000), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ ms: 3_600_000, fails: true }) }, // hangs until its deadline
)

/**
 * Random arrivals, refreshes that fail or hang, restarts, an inbox that breaks, tags that come late or never: expects that
 * no event is lost, that each is settled as it deserves, and that two refreshes never run at once.
 */
export async function coalesceAtRandom(numRuns: number): Promise<void> {
  const scenario = fc.record({
    steps: fc.array(step, { minLength: 1, maxLength: 40 }),
    outcomes: fc.array(outcome, { maxLength: 12 }),
    lateMs: fc.nat(900_000),
  })
  await fc.assert(
    fc.asyncProperty(scenario, async ({ steps, outcomes, lateMs }) => {
      let lateFrom = Infinity
      const left = [...outcomes]
      const world = createWorld(
        ({ tags }) => {
          const { ms, fails } = left.shift() ?? { ms: 100, fails: false }
          const own = tags.includes(POISON) ? 'it chokes' : null
          return { ms, failure: fails ? 'no luck' : own }
        },
        ({ tag }) => {
          const isThere = tag !== INVISIBLE && (tag !== LATE || world.clock.now() >= lateFrom)
          return isThere ? 'visible' : 'absent'
        },
      )
      lateFrom = world.clock.now() + lateMs
      for (const one of steps) {
        if (one.does === 'pass') await world.pass(one.ms)
        if (one.does === 'restart') world.restart()
        if (one.does === 'breakInbox') world.fail(one.yes)
        if (one.does !== 'arrive') continue
        const target = one.tag === null ? null : tagged(one.tag)
        if (one.told) world.arrive(target)
        else world.store(target)
      }
      world.fail(false)
      world.restart()
      await world.pass(8 * DAY)
      expect(world.most()).toBeLessThanOrEqual(1)
      expect(world.rows.filter(({ state }) => state === 'pending')).toEqual([])
      for (const row of world.rows) {
        const { target, state, storedAt } = row
        const covering = world.asked.filter(
          ({ ok, startedAt, tags }) => ok && startedAt >= storedAt && (target === null || tags.includes(target.tag)),
        )
        if (state === 'done') expect(covering.length).toBeGreaterThan(0)
        else expect([POISON, INVISIBLE, LATE]).toContain(target?.tag)
        if (target?.tag === POISON || target?.tag === INVISIBLE) expect(state).toBe('dead')
      }
    }),
    { numRuns },
  )
}
