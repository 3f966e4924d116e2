import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type TestContext, describe, test } from 'vitest'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import type { BoxesStatus } from '../../../src/base/reports/transfer.ts'
import { type Served, openWorld } from '../../support/daemons.ts'
import { type FakeClock, FAKETIME, createFakeClock } from '../../support/faketime.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** How long a step of the clock may need until the schedule has seen it, milliseconds. */
const SEEN_MS = 6000

/** Starts a daemon whose time of day is that of a clock of the test's own. */
async function serveAt({ expect, onTestFinished }: TestContext, at: string, zone: string, schedule: string) {
  let clock: FakeClock | null = null
  const now = (): number => clock?.now() ?? Date.parse(at)
  const world = await openWorld({ records: 20, service: false, now })
  onTestFinished(() => world.close())
  clock = createFakeClock(world.dir, Date.parse(at))
  Object.assign(world.env, clock.env, {
    TZ: zone,
    LIMIT_SYNC_JITTER_SECONDS: '0',
    PATCHMIRROR_OSV_RECONCILE_SCHEDULE: '0 0 1 1 *',
    PATCHMIRROR_OSV_SCHEDULE: schedule,
  })
  const daemon = await world.serve()
  await expect.poll(() => runsOf(daemon)).toHaveLength(1) // caught up: nothing was stored
  return { world, clock, daemon }
}

interface Source {
  name: string
  nextRunAt: string
  lastRun: { id: number; startedAt: string; trigger?: string }
}

interface Boxes {
  boxes?: BoxesStatus
}

async function osvOf({ url }: Served): Promise<Source> {
  const { sources } = (await (await fetch(`${url}/-/status`)).json()) as { sources: Source[] }
  const osv = sources.find(({ name }) => name === 'osv')
  if (osv === undefined) throw new Error('the status has no osv')
  return osv
}

/** All lines of a daemon's log so far. */
const logs = new WeakMap<Served, string[]>()

function linesOf(daemon: Served): string[] {
  const known = logs.get(daemon)
  if (known !== undefined) return known
  const lines = daemon.text.split('\n')
  logs.set(daemon, lines)
  const add = (chunk: Buffer): void => void lines.push(...chunk.toString().split('\n'))
  daemon.child.stdout?.on('data', add)
  daemon.child.stderr?.on('data', add)
  return lines
}

/** The messages of the runs of osv that ended. */
function runsOf(daemon: Served): string[] {
  return linesOf(daemon).filter((line) => line.includes('"msg":"osv sync: complete'))
}

const said = (daemon: Served, text: string): boolean => linesOf(daemon).some((line) => line.includes(text))

/** Expects another run of osv, and no second one. */
async function expectOneRun({ expect }: TestContext, daemon: Served, before: number): Promise<void> {
  await expect.poll(() => runsOf(daemon).length).toBe(before + 1)
  await pause(SEEN_MS)
  expect(runsOf(daemon)).toHaveLength(before + 1)
}

const nextIn = async (daemon: Served, clock: FakeClock): Promise<number> =>
  Date.parse((await osvOf(daemon)).nextRunAt) - clock.now()

// Each has a daemon of its own and mostly waits. Beside each other they need the `expect` of their own.
describe.skipIf(FAKETIME === null).concurrent('the daemon (needs libfaketime, package faketime)', () => {
  test('runs at most an interval later when the clock is set back by two hours or a year, as its status says', async (context) => {
    const { expect } = context
    const { world, clock, daemon } = await serveAt(context, '2026-05-04T12:30:00Z', 'UTC', '7 * * * *')
    for (const at of ['2026-05-04T10:30:00Z', '2025-05-04T10:30:00Z']) {
      const before = runsOf(daemon).length
      clock.set(Date.parse(at))
      await expect.poll(() => nextIn(daemon, clock)).toBeLessThanOrEqual(HOUR)
      const next = Date.parse((await osvOf(daemon)).nextRunAt)
      expect(new Date(next).toISOString().slice(13)).toBe(':07:00.000Z')
      clock.set(next - 3000)
      await expectOneRun(context, daemon, before)
    }
    expect(said(daemon, 'the clock was set back by ')).toBe(true)
    const { out } = await world.patchmirror('status')
    expect(out).toContain('osv: the newest snapshot lies in the future')
    const doctor = await world.patchmirror('doctor')
    expect(doctor.out).toMatch(/warn +dates .*osv: the newest snapshot lies in the future/)
  })

  test('makes a start up once that was missed while the process was stopped, and says so', async (context) => {
    const { expect } = context
    const { clock, daemon } = await serveAt(context, '2026-05-04T02:59:00Z', 'UTC', '0 3 * * *')
    clock.set(Date.parse('2026-05-04T02:59:50Z'))
    await pause(300)
    daemon.child.kill('SIGSTOP') // long before the start, however busy the machine is
    await pause(13_000)
    daemon.child.kill('SIGCONT')
    await expectOneRun(context, daemon, 1)
    const line = 'osv: the start planned for 2026-05-04T03:00:00.000Z was missed'
    expect(said(daemon, line)).toBe(true)
    expect((await osvOf(daemon)).nextRunAt).toBe('2026-05-05T03:00:00.000Z')
  })

  test('makes up once for what a clock passed that goes on by hours or by a century, and answers meanwhile', async (context) => {
    const { expect } = context
    const { clock, daemon } = await serveAt(context, '2026-05-04T02:00:00Z', 'UTC', '7 * * * *')
    for (const at of ['2026-05-04T22:30:00Z', '2125-05-04T22:30:00Z']) {
      const before = runsOf(daemon).length
      clock.set(Date.parse(at))
      await expectOneRun(context, daemon, before)
      expect(await nextIn(daemon, clock)).toBeLessThanOrEqual(HOUR)
    }
    expect(said(daemon, 'the clock went on by ')).toBe(true)
  })

  test('keeps the bundles of its inbox while its clock is a year behind, says why, and imports them once it is right', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await openWorld({ records: 10, service: false })
    onTestFinished(() => world.close())
    const box = join(world.dir, 'box')
    mkdirSync(box)
    const { line } = createKeyFiles(join(world.dir, 'key'))
    Object.assign(world.env, { PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(world.dir, 'key') })
    expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
    expect((await world.patchmirror('bundle', 'export', join(box, 'full.zip'))).code).toBe(0)
    const clock = createFakeClock(world.dir, Date.now() - 365 * 24 * HOUR)
    const { url } = await world.serve({
      ...clock.env,
      PATCHMIRROR_UPSTREAM_API_ROOT: '',
      PATCHMIRROR_BUNDLE_SIGNING_KEYS: '',
      PATCHMIRROR_DATA_DIR: join(world.dir, 'below'),
      PATCHMIRROR_BUNDLE_INBOX: box,
      LIMIT_BUNDLE_POLL_SECONDS: '1',
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
    })
    const inbox = async () => {
      const { boxes } = (await (await fetch(`${url}/-/status`)).json()) as Boxes
      return boxes?.inbox
    }
    const why = expect.stringContaining('waiting for the clock to be right') as string
    await expect.poll(async () => (await inbox())?.waiting).toEqual([{ file: 'full.zip', why }])
    clock.set(Date.now())
    await expect.poll(inbox).toMatchObject({ waiting: [], imported: 1, refused: 0 })
    expect(readdirSync(join(box, 'done'))).toEqual(['full.zip'])
  })

  test('goes on through the hour that comes twice, minute by minute', async (context) => {
    const { expect } = context
    const { clock, daemon } = await serveAt(context, '2026-10-25T00:58:30Z', 'Europe/Berlin', '* * * * *')
    for (const at of ['00:58:58', '00:59:58', '01:00:58', '01:30:58', '01:59:58']) {
      const before = runsOf(daemon).length
      expect(await nextIn(daemon, clock)).toBeLessThanOrEqual(MINUTE)
      clock.set(Date.parse(`2026-10-25T${at}Z`))
      await expect.poll(() => runsOf(daemon).length).toBeGreaterThan(before)
    }
  })

  test.for([
    ['Europe/Berlin', '30 2 * * *', '2026-03-29T00:59:30Z', '2026-03-29T01:00:00.000Z'],
    ['America/New_York', '30 2 * * *', '2026-03-08T06:59:30Z', '2026-03-08T07:00:00.000Z'],
    ['Australia/Lord_Howe', '10 2 * * *', '2026-10-03T15:29:30Z', '2026-10-03T15:30:00.000Z'],
    ['Africa/Casablanca', '30 2 * * *', '2026-03-22T01:59:30Z', '2026-03-22T02:00:00.000Z'],
    ['America/Santiago', '30 0 * * *', '2026-09-06T03:59:30Z', '2026-09-06T04:00:00.000Z'],
  ] as const)('makes the run of a day in %s whose time (%s) the clocks leave out', async (row, context) => {
    const { expect } = context
    const [zone, schedule, from, at] = row
    const { clock, daemon } = await serveAt(context, from, zone, schedule)
    expect((await osvOf(daemon)).nextRunAt).toBe(at)
    clock.set(Date.parse(at) - 2000)
    await expectOneRun(context, daemon, 1)
    const next = Date.parse((await osvOf(daemon)).nextRunAt) - Date.parse(at)
    expect(next / HOUR).toBeGreaterThan(22)
    expect(next / HOUR).toBeLessThan(26)
  })
})
