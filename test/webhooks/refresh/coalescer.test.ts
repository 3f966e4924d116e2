import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { LOOKS_MS, MAX_ATTEMPTS } from '../../../src/webhooks/refresh/settlement.ts'
import { coalesceAtRandom } from './coalesce-random.ts'
import { type Answer, type Shown, createWorld, tagged } from './coalescing.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const DAY = 86_400_000
const atOnce: Answer = () => ({ ms: 500, failure: null })
const always = (): Shown => 'visible'
const never = (): Shown => 'absent'

describe('the coalescer of refreshes', () => {
  test('refreshes at once for the first event, and two seconds after the last of those that follow', async () => {
    const world = createWorld(atOnce, always)
    await world.pass(10_000)
    const start = world.clock.now()
    for (let i = 0; i < 5; i++) {
      world.arrive(tagged(`t${i}`))
      await world.pass(1_000)
    }
    await world.pass(20_000)
    expect(world.asked).toMatchObject([
      { startedAt: start, ok: true, tags: ['t0'] },
      { startedAt: start + 6_000, ok: true, tags: ['t1', 't2', 't3', 't4'] },
    ])
    expect(new Set(world.rows.map(({ state }) => state))).toEqual(new Set(['done']))
    expect(world.rows[0]).toMatchObject({ refreshedAt: start + 500, visibleAt: start + 500 })
    expect(world.rows[1]).toMatchObject({ refreshedAt: start + 6_500, visibleAt: start + 6_500 })
  })

  test('refreshes at once for each event that comes after a quiet debounce, a retry included', async () => {
    const world = createWorld(atOnce, ({ tag }) => (tag === 'late' ? 'absent' : 'visible'))
    await world.pass(10_000)
    const start = world.clock.now()
    for (const ms of [2_000, 3_500, 2_100]) {
      world.arrive(tagged(ms === 3_500 ? 'late' : 't'))
      await world.pass(ms)
    }
    world.arrive(tagged('t')) // 100 ms after the refresh began that looks for the late one again
    await world.pass(10_000)
    const starts = world.asked.map(({ startedAt }) => startedAt - start)
    expect(starts).toEqual([0, 2_000, 5_500, 7_500, 9_600])
  })

  test('lets no event wait because another process wrote to the database, and takes up what it made pending', async () => {
    const world = createWorld(atOnce, always)
    const start = world.clock.now()
    world.arrive(tagged('first'))
    await world.pass(1_500)
    await world.changed() // nothing is pending: the relay wrote
    await world.pass(500)
    world.arrive(tagged('second'))
    await world.pass(1_000)
    world.store(tagged('again'))
    await world.changed()
    await world.pass(5_000)
    const starts = world.asked.map(({ startedAt, tags }) => [startedAt - start, ...tags])
    expect(starts).toEqual([
      [0, 'first'],
      [2_000, 'second'],
      [4_000, 'again'],
    ])
  })

  test('waits no longer than thirty seconds while events keep coming', async () => {
    const world = createWorld(atOnce, always)
    await world.pass(10_000)
    const start = world.clock.now()
    for (let i = 0; i < 50; i++) {
      world.arrive(tagged('t'))
      await world.pass(1_000)
    }
    const starts = world.asked.map(({ startedAt }) => startedAt - start)
    expect(starts).toEqual([0, 31_000])
  })

  test('refreshes once more for events that arrive meanwhile, and settles them with that refresh', async () => {
    const world = createWorld(() => ({ ms: 60_000, failure: null }), always)
    world.arrive(tagged('a'))
    await world.pass(10_000)
    for (let i = 0; i < 20; i++) {
      world.arrive(tagged('b'))
      await world.pass(2_000)
    }
    expect(world.asked).toHaveLength(1)
    await world.pass(300_000)
    expect(world.asked.map(({ tags }) => tags)).toEqual([['a'], ['b']])
    expect(world.most()).toBe(1)
  })

  bothTest('takes thousands of events with at most two refreshes', async () => {
    const world = createWorld(atOnce, always)
    for (let i = 0; i < (LONG ? 10_000 : 1_000); i++) {
      world.arrive(tagged(`t${i % 10}`))
      if (i % 100 === 99) await world.pass(100)
    }
    await world.pass(120_000)
    expect(world.asked.length).toBeLessThanOrEqual(2)
    expect(world.rows.filter(({ state }) => state !== 'done')).toEqual([])
  })

  test('looks again for an item that is not visible yet, and settles it when it is', async () => {
    let visible = false
    const world = createWorld(atOnce, () => (visible ? 'visible' : 'absent'))
    const { id } = world.arrive(tagged('late'))
    await world.pass(500)
    const first = world.clock.now()
    expect(world.rows[0]).toMatchObject({ state: 'pending', refreshedAt: first })
    await world.pass(60_000)
    expect(world.asked.map(({ startedAt }) => startedAt - first).slice(1)).toEqual([5_000, 30_000])
    visible = true
    await world.pass(61_000)
    expect(world.rows.find((row) => row.id === id)).toMatchObject({
      state: 'done',
      refreshedAt: first,
      visibleAt: first + 120_500,
      reason: null,
    })
  })

  test('gives up after the last look, and says what the mirror has, not what upstream lists', async () => {
    const world = createWorld(atOnce, never)
    world.arrive(tagged('never'))
    await world.pass(DAY)
    expect(world.asked).toHaveLength(1 + LOOKS_MS.length)
    expect(world.rows[0]).toMatchObject({
      state: 'dead',
      reason: 'not found here: the stored list of tags does not have it, ten minutes after the refresh',
    })
  })

  test('settles a dead letter when a later sync has brought its tag, and no other', async () => {
    let come = ''
    const world = createWorld(atOnce, ({ tag }) => (come.includes(tag ?? '-') ? 'visible' : 'absent'))
    for (let count = 0; count < 120; count++) world.arrive(tagged(`never ${count}`))
    world.arrive(tagged('late'))
    world.arrive({ ...tagged('late'), others: [tagged('missing')] })
    await world.pass(DAY)
    expect(world.rows.filter(({ state }) => state === 'dead')).toHaveLength(122)
    come = 'late, never 0'
    const asked = world.asked.length
    await world.pass(300_000)
    expect(world.asked).toHaveLength(asked)
    const settled = world.rows.filter(({ state }) => state !== 'dead')
    expect(settled.map(({ target }) => target?.tag)).toEqual(['never 0', 'late'])
    expect(settled[0]).toMatchObject({ state: 'done', reason: 'brought by a sync after it was given up' })
  })

  test('settles a tag whose documents never all appear, but not one with another digest', async () => {
    const world = createWorld(atOnce, ({ tag }) => (tag === 'poor' ? 'partly' : 'other digest'))
    world.arrive(tagged('poor'))
    world.arrive(tagged('moved'))
    await world.pass(DAY)
    expect(world.asked).toHaveLength(1 + LOOKS_MS.length)
    expect(world.rows).toMatchObject([
      { state: 'done', reason: expect.stringContaining('documents') as string },
      { state: 'dead', reason: expect.stringMatching(/^it was replaced since, or .* another digest/) as string },
    ])
    expect(world.rows[0]?.visibleAt).toBeGreaterThan(0)
  })

  test('settles a tag that is listed without any document at once, and says so', async () => {
    const world = createWorld(atOnce, () => 'alone')
    world.arrive(tagged('outside'))
    await world.pass(5_000)
    expect(world.rows[0]).toMatchObject({ state: 'done', reason: expect.stringContaining('catalog.scope') as string })
  })

  test('refreshes all items that one delivery names, and settles it when all can be read', async () => {
    let late: Shown = 'absent'
    const world = createWorld(atOnce, ({ tag }) => (tag === 'late' ? late : 'visible'))
    world.arrive({ ...tagged('early'), others: [tagged('late'), tagged('third')] })
    await world.pass(10_000)
    expect(world.asked[0]?.tags).toEqual(['early', 'late', 'third'])
    expect(world.rows[0]).toMatchObject({
      state: 'pending',
      reason: 'not yet: the stored list of tags does not have it',
    })
    late = 'visible'
    await world.pass(40_000)
    expect(world.rows[0]).toMatchObject({ state: 'done', reason: null })
  })

  test('retries a row alone when its visibility is unknown', async () => {
    let broken = true
    const world = createWorld(atOnce, ({ tag }) => {
      if (broken && tag === 'a') throw new Error('the database is damaged')
      return 'visible'
    })
    world.arrive(tagged('a'))
    world.arrive(tagged('b'))
    await world.pass(5_000)
    expect(world.rows).toMatchObject([
      { state: 'pending', reason: 'the refresh failed: the database is damaged' },
      { state: 'done' },
    ])
    broken = false
    await world.pass(60_000)
    expect(world.rows[0]?.state).toBe('done')
  })

  test('settles an event without a target after a refresh', async () => {
    const world = createWorld(atOnce, never)
    world.arrive(null)
    await world.pass(5_000)
    expect(world.asked).toMatchObject([{ tags: [] }])
    expect(world.rows[0]).toMatchObject({ state: 'done', visibleAt: null })
  })

  test('settles what can be read while another source fails, and repeats only the rest', async () => {
    const failing = () => ({ ms: 10, failure: 'osv: failed', isElsewhere: true })
    const world = createWorld(failing, ({ tag }) => (tag === 'a' ? 'visible' : 'absent'))
    world.arrive(tagged('a'))
    world.arrive(tagged('never'))
    await world.pass(5_000)
    expect(world.rows[0]).toMatchObject({ state: 'done', attempts: 0, reason: null })
    expect(world.state().failuresInRow).toBe(0)
    await world.pass(DAY)
    expect(world.asked).toHaveLength(1 + LOOKS_MS.length)
    expect(world.rows[1]).toMatchObject({ state: 'dead', attempts: 0 })
  })

  test('repeats an event that names nothing while another source fails', async () => {
    let failure: string | null = 'osv: failed'
    const world = createWorld(() => ({ ms: 10, failure, isElsewhere: true }), always)
    world.arrive(null)
    world.arrive(tagged('a'))
    await world.pass(1_000)
    expect(world.rows).toMatchObject([{ state: 'pending', attempts: 1 }, { state: 'done' }])
    failure = null
    await world.pass(60_000)
    expect(world.rows[0]).toMatchObject({ state: 'done' })
  })

  test('retries with growing pauses while the service is down, and gives up after about a day', async () => {
    const world = createWorld(() => ({ ms: 10, failure: 'no connection' }), always)
    world.arrive(tagged('a'))
    await world.pass(DAY / 2)
    expect(world.rows[0]).toMatchObject({
      state: 'pending',
      reason: 'the refresh failed: no connection',
    })
    await world.pass(DAY)
    expect(world.rows[0]).toMatchObject({ state: 'dead', attempts: MAX_ATTEMPTS })
    const [last] = world.asked.slice(-1)
    expect((last?.startedAt ?? 0) - (world.asked[0]?.startedAt ?? 0)).toBeGreaterThan(0.9 * DAY)
    expect(world.asked).toHaveLength(MAX_ATTEMPTS)
  })

  longTest('retries once a minute at most while the service is down, and catches up soon after', async () => {
    let failure: string | null = 'no connection'
    const world = createWorld(() => ({ ms: 10, failure }), always)
    for (let i = 0; i < 500; i++) world.arrive(tagged(`t${i}`))
    await world.pass(6 * 3_600_000)
    const tries = world.asked.length
    expect(tries).toBeLessThan(370)
    failure = null
    await world.pass(720_000)
    expect(world.asked.length - tries).toBeLessThan(30)
    expect(world.rows.filter(({ state }) => state !== 'done')).toEqual([])
  })

  test('does not let one row that fails every refresh delay the others', async () => {
    const world = createWorld(({ tags }) => {
      return { ms: 10, failure: tags.includes('poison') ? 'it chokes' : null }
    }, always)
    for (let i = 0; i < 30; i++) world.arrive(tagged(i === 17 ? 'poison' : `t${i}`))
    await world.pass(480_000)
    const waiting = world.rows.filter(({ state }) => state === 'pending')
    expect(waiting.map(({ target }) => target?.tag)).toEqual(['poison'])
    world.arrive(tagged('fresh'))
    await world.pass(3_000)
    expect(world.rows.at(-1)).toMatchObject({ state: 'done' })
    await world.pass(3 * DAY)
    expect(waiting.map(({ id }) => world.rows[id - 1]?.state)).toEqual(['dead'])
  })

  test('resumes after a restart with the stored rows', async () => {
    const world = createWorld(atOnce, always)
    world.arrive(tagged('told'))
    await world.pass(100) // in the midst of the refresh
    world.store(tagged('untold'))
    world.restart()
    await world.pass(5_000)
    expect(world.rows.map(({ state }) => state)).toEqual(['done', 'done'])
    expect(world.asked.at(-1)?.tags).toEqual(['told', 'untold'])
  })

  test('continues when the inbox could not be read or written for a while', async () => {
    const world = createWorld(atOnce, always)
    await world.pass(10_000)
    world.arrive(tagged('a'))
    await world.pass(100)
    world.fail(true) // the refresh succeeds, what became of it cannot be written
    await world.pass(60_000)
    expect(world.warnings.length).toBeGreaterThan(0)
    expect(world.rows[0]?.state).toBe('pending')
    world.fail(false)
    await world.pass(DAY)
    expect(world.rows[0]?.state).toBe('done')
  })

  test('requests nothing after it was stopped, and settles nothing of a refresh that ends then', async () => {
    const world = createWorld(() => ({ ms: 5_000, failure: null }), always)
    world.arrive(tagged('a'))
    await world.pass(100)
    world.stop()
    world.arrive(tagged('b'))
    await world.pass(DAY)
    expect(world.asked).toHaveLength(1)
    expect(world.rows.map(({ state }) => state)).toEqual(['pending', 'pending'])
  })
})

longTest(
  'no event is lost and two refreshes never run at once in a random sequence of events, failures and restarts',
  async () => {
    await coalesceAtRandom(10)
  },
)

bothTest(
  'two refreshes begin at least one debounce apart, and a row waits no longer than it and the refresh before',
  async () => {
    const arrivals = fc.array(fc.record({ gap: fc.nat(8_000), tag: fc.constantFrom('a', 'b') }), {
      minLength: 1,
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(arrivals, fc.nat(50_000), async (events, ms) => {
        const world = createWorld(() => ({ ms, failure: null }), always)
        for (const { gap, tag } of events) {
          await world.pass(gap)
          world.arrive(tagged(tag))
        }
        await world.pass(200_000)
        const starts = world.asked.map(({ startedAt }) => startedAt)
        const gaps = starts.slice(1).map((at, i) => at - (starts[i] ?? 0))
        expect(Math.min(Infinity, ...gaps)).toBeGreaterThanOrEqual(Math.max(2_000, ms))
        for (const { storedAt, refreshedAt } of world.rows) {
          expect((refreshedAt ?? Infinity) - storedAt).toBeLessThanOrEqual(30_000 + 2 * ms)
        }
      }),
      { numRuns: LONG ? 40 : 3 },
    )
  },
)
