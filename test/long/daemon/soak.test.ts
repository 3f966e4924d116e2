import { mkdtempSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type ExpectStatic, type TestContext, describe, test } from 'vitest'
import { openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import type { Run } from '../../../src/store/runs/runs.ts'
import { type Served, type World, openWorld } from '../../support/daemons.ts'
import { type FakeClock, FAKETIME, createFakeClock } from '../../support/faketime.ts'
import { emptyDisk, fillDisk, mayMount, mountDisk, unmountDisk } from '../../support/small-disk.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Hours of each of the two nights. */
const HOURS = 13
/** So long the test looks whether a run is made twice, milliseconds: longer than the schedule looks at the clocks. */
const QUIET_MS = 2200

/** A night with a daemon whose clock is the test's. */
interface Night {
  readonly expect: ExpectStatic
  readonly world: World
  readonly clock: FakeClock
  /** The data folder. */
  readonly data: string
  daemon: Served
  /** What earlier daemons of the night said. */
  said: string
}

/** Starts it; `folder`: where its data folder lies. */
async function begin({ expect, onTestFinished }: TestContext, at: string, folder = tmpdir()): Promise<Night> {
  let clock: FakeClock | null = null
  const now = (): number => clock?.now() ?? Date.parse(at)
  const world = await openWorld({ records: 30, service: false, now })
  onTestFinished(() => world.close())
  clock = createFakeClock(world.dir, Date.parse(at))
  const data = join(mkdtempSync(join(folder, 'night-')), 'data')
  Object.assign(world.env, clock.env, {
    PATCHMIRROR_DATA_DIR: data,
    TZ: 'Europe/Berlin',
    LIMIT_SYNC_JITTER_SECONDS: '0',
    PATCHMIRROR_OSV_SCHEDULE: '7 * * * *',
    PATCHMIRROR_OSV_RECONCILE_SCHEDULE: '30 2 * * *',
  })
  const night = { expect, world, clock, data, daemon: await world.serve(), said: '' }
  collect(night)
  return night
}

/** Keeps all that a daemon says. */
function collect(night: Night): void {
  night.said += night.daemon.text
  const add = (chunk: Buffer): void => void (night.said += chunk.toString())
  night.daemon.child.stdout?.on('data', add)
  night.daemon.child.stderr?.on('data', add)
}

/** How often a text is in the log. */
const times = ({ said }: Night, text: string): number => said.split(text).length - 1

/** The runs of the records that have ended, oldest first. */
function runsOf({ data }: Night, kind: Run['kind'] = 'sync'): Run[] {
  const db = openReader(data)
  if (db === null) return []
  try {
    const runs = createReads(db).runs.listRuns(500)
    const ended = runs.filter(({ endedAt }) => endedAt !== null)
    return ended.filter((run) => run.source === 'osv' && run.kind === kind).reverse()
  } finally {
    db.close()
  }
}

/** How many runs of the records ended like this. */
function runsIn(night: Night, state: Run['state']): number {
  return runsOf(night).filter((run) => run.state === state).length
}

/** Expects so many runs more that end like this, and then none. */
async function expectRuns(
  night: Night,
  before: number,
  more: number,
  what: string,
  state: Run['state'] = 'complete',
): Promise<void> {
  const { expect } = night
  await expect.poll(() => runsIn(night, state), { message: what }).toBe(before + more)
  await pause(QUIET_MS)
  expect(runsIn(night, state), what).toBe(before + more)
}

async function kill(night: Night): Promise<void> {
  night.daemon.child.kill('SIGKILL')
  await night.daemon.finished
}

async function serveAgain(night: Night): Promise<void> {
  night.daemon = await night.world.serve()
  collect(night)
}

/** What happens in an hour; `slot`: when its run is due, Unix milliseconds. */
type Hour = (night: Night, slot: number) => Promise<void>

const comesNormally: Hour = async ({ clock }, slot) => {
  clock.set(slot - 1000)
  await pause(1)
}

/** The service answers nothing but errors. */
const isDown: Hour = async (night, slot) => {
  night.world.sandbox.faults.set(/./, { kind: 'reset', bytes: 0 })
  await comesNormally(night, slot)
}

/** The folder is lost, and the mirror comes back from a backup that was made before. */
const isRestored: Hour = async (night, slot) => {
  const { expect } = night
  const path = join(night.world.dir, 'backup.zip')
  expect(await night.world.patchmirror('backup', path)).toMatchObject({ code: 0 })
  await kill(night)
  renameSync(night.data, `${night.data}-lost`)
  night.clock.set(slot + 20 * MINUTE)
  expect(await night.world.patchmirror('restore', path)).toMatchObject({ code: 0 })
  await serveAgain(night)
}

/** What happens in the hours of a night; in all others the clock comes to the time of the run and goes on. */
const EVENTS: Record<number, readonly [string, Hour]> = {
  2: [
    'the process is killed, and comes back after the start was due',
    async (night, slot) => {
      await kill(night)
      night.clock.set(slot + 10 * MINUTE)
      await serveAgain(night)
    },
  ],
  3: [
    'the process is killed and comes back before the start is due',
    async (night, slot) => {
      await kill(night)
      night.clock.set(slot - 8000)
      await serveAgain(night)
    },
  ],
  4: [
    'the process is stopped while the start is due',
    async ({ clock, daemon }, slot) => {
      clock.set(slot - 1000)
      await pause(200)
      daemon.child.kill('SIGSTOP')
      await pause(4000)
      daemon.child.kill('SIGCONT')
    },
  ],
  7: [
    'the machine is suspended while the start is due',
    async ({ clock }, slot) => {
      clock.set(slot + 35 * MINUTE)
      await pause(1)
    },
  ],
  9: [
    'the clock is set back a little just after the start',
    async (night, slot) => {
      const before = runsOf(night).length
      night.clock.set(slot - 2000)
      await night.expect.poll(() => runsOf(night).length).toBe(before + 1)
      night.clock.set(slot - 3000)
    },
  ],
  8: ['the folder is lost and restored while the start is due', isRestored],
  10: ['the service is down', isDown],
  11: ['the service is still down', isDown],
}

// Each has a daemon of its own and mostly waits. Beside each other they need the `expect` of their own.
describe.skipIf(FAKETIME === null).concurrent('a daemon (needs libfaketime, package faketime)', () => {
  test.for([
    ['go back', '2026-10-24T19:30:00Z', '2026-10-25T00:30'],
    ['go forward', '2026-03-28T19:30:00Z', '2026-03-29T01:00'],
  ] as const)(
    'misses nothing that is due in a night in which clocks %s, makes nothing twice, and names each problem once',
    async ([, from, reconcileAt], context) => {
      const { expect } = context
      const night = await begin(context, from)
      await expect.poll(() => runsOf(night).length).toBe(1) // caught up: nothing was stored
      const first = Date.parse(from) + 37 * MINUTE
      for (let hour = 0; hour < HOURS; hour++) {
        const [what, happen] = EVENTS[hour] ?? ['nothing happens', comesNormally]
        night.world.sandbox.feed.change(1)
        night.world.sandbox.faults.clear()
        const state = happen === isDown ? 'failed' : 'complete'
        const before = runsIn(night, state)
        await happen(night, first + hour * HOUR)
        await expectRuns(night, before, 1, `hour ${hour}: ${what}`, state)
      }
      const hours = Array.from({ length: HOURS }, (_, hour) => EVENTS[hour]?.[1] === isDown)
      const states = hours.map((down) => (down ? 'failed' : 'complete'))
      expect(runsOf(night).map(({ state }) => state)).toEqual(['complete', ...states])
      const triggers = runsOf(night).map(({ trigger }) => trigger)
      expect(triggers.flatMap((one, n) => (one === 'start' ? [n] : []))).toEqual([0, 3, 9])
      const reconciles = runsOf(night, 'reconcile')
      expect(reconciles).toHaveLength(1)
      const started = reconciles[0]?.startedAt ?? 0
      expect(started).toBeGreaterThanOrEqual(Date.parse(`${reconcileAt}:00Z`))
      expect(started).toBeLessThan(Date.parse(`${reconcileAt}:00Z`) + HOUR)
      expect(times(night, 'was missed and is made now')).toBeGreaterThanOrEqual(2)
      expect(times(night, 'the clock was set back')).toBe(1)
      expect(times(night, '"level":"error"')).toBe(1) // the service was down for two hours
      expect(times(night, 'no run fails with upstream_unreachable any more')).toBe(1)
    },
  )

  test.skipIf(!mayMount())(
    'that starts on a full disk makes the run that is due when there is room, once, and says both once (needs the right to mount a tmpfs)',
    async (context) => {
      const { expect } = context
      const disk = mountDisk('128m') ?? ''
      context.onTestFinished(() => unmountDisk(disk))
      const night = await begin(context, '2026-05-04T12:30:00Z', disk)
      await expect.poll(() => runsIn(night, 'complete')).toBe(1)
      night.daemon.child.kill()
      await night.daemon.finished
      fillDisk(disk)
      night.world.sandbox.feed.change(1)
      night.clock.set(Date.parse('2026-05-04T13:17:00Z'))
      await serveAgain(night)
      await expect.poll(() => times(night, '"storage":"full"')).toBe(1)
      emptyDisk(disk)
      await expect.poll(() => runsIn(night, 'complete')).toBe(2)
      await expect.poll(() => times(night, 'can be written to again')).toBe(1)
      await pause(QUIET_MS)
      expect([runsIn(night, 'complete'), times(night, '"storage":"full"')]).toEqual([2, 1])
    },
  )

  test('says that a snapshot lies in the future while it does, and no longer', async (context) => {
    const { expect } = context
    const night = await begin(context, '2026-05-04T12:30:00Z')
    await expect.poll(() => runsOf(night).length).toBe(1)
    const status = async (): Promise<string> => (await night.world.patchmirror('status')).out
    expect(await status()).not.toContain('lies in the future')
    night.clock.set(Date.parse('2026-05-04T10:30:00Z'))
    await expect.poll(() => times(night, 'the clock was set back')).toBe(1)
    expect(await status()).toContain('osv: the newest snapshot lies in the future')
    night.world.sandbox.feed.change(1)
    night.clock.set(Date.parse('2026-05-04T11:06:58Z'))
    await expectRuns(night, 1, 1, 'the next run by the clock that is right')
    expect(await status()).not.toContain('osv: the newest snapshot lies in the future')
    expect(times(night, 'the clock was set back')).toBe(1)
  })
})
