import { type ChildProcess, fork } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { buildArchive } from '../../../src/archive/build.ts'
import { derivedDir } from '../../../src/store/database/open.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { median } from '../report/figures.ts'
import { type DaemonProcess, startDaemon, took } from '../world/daemon.ts'
import { freePort } from '../../support/free-ports.ts'
import { ROOT, type SandboxProcess, ended, messageFrom } from '../world/processes.ts'

/** Records that change, of those that are mirrored. */
export const CHANGED = 100

/** What runs cost when nothing, little, or something silent has changed. Milliseconds and bytes. */
export interface Changes {
  readonly unchanged: { readonly ms: number; readonly requests: number; readonly isSame: boolean }
  /** `bare`: the bare loop with the same changes. */
  readonly changed: { readonly ms: number; readonly requests: number; readonly bare: BareChanges }
  readonly reconcile: { readonly fetched: number; readonly whole: number; readonly found: number }
}

/** What the bare loop took, milliseconds, and its requests alone. */
interface BareChanges {
  readonly ms: number
  readonly wireMs: number
}

/** Measures such runs on a daemon that has everything; it is idle before each. `database`: that of the bare loop. */
export async function runChanges(sandbox: SandboxProcess, daemon: DaemonProcess, database: string): Promise<Changes> {
  return {
    unchanged: await unchanged(daemon),
    changed: await changed(sandbox, daemon, database),
    reconcile: await reconcile(sandbox, daemon),
  }
}

async function unchanged(daemon: DaemonProcess): Promise<Changes['unchanged']> {
  const before = digest(daemon.dir)
  const osv = await daemon.run('osv')
  const feeds = await daemon.run('feeds')
  const requests = Number(osv.facts['requests']) + Number(feeds.facts['requests'])
  return { ms: took(osv), requests, isSame: digest(daemon.dir) === before }
}

/** Sums up every row of every table but the run log, as SQLite has them. */
function digest(dir: string): string {
  const db = new Database(join(dir, 'mirror.db'), { readonly: true })
  const tables = [...['snapshot', 'document', 'upstream_state'], ...['osv_archive', 'osv_tombstone', 'quarantine']]
  try {
    const parts = tables.map((table) => db.prepare(`SELECT * FROM ${table}`).raw().all())
    const records = 'SELECT count(*), sum(changed), max(body) FROM osv_record'
    return JSON.stringify([parts, db.prepare(records).raw().get()])
  } finally {
    db.close()
  }
}

async function changed(sandbox: SandboxProcess, daemon: DaemonProcess, database: string): Promise<Changes['changed']> {
  const times: number[] = []
  const bare: BareChanges[] = []
  let requests = 0
  const args = [sandbox.url, database]
  const child = fork(`${ROOT}test/bench/records/loops/changes.ts`, args, { cwd: ROOT })
  await messageFrom(child, () => true)
  for (let round = 0; round < 3; round++) {
    await sandbox.command('change', CHANGED)
    await daemon.idle()
    const run = await daemon.run('osv')
    times.push(took(run))
    requests = Math.max(requests, Number(run.facts['requests']))
    await daemon.idle()
    bare.push(await bareChanges(child))
  }
  child.disconnect()
  await ended(child)
  const middle = (of: (one: BareChanges) => number): number => median(bare.map(of))
  const loop = { ms: middle(({ ms }) => ms), wireMs: middle(({ wireMs }) => wireMs) }
  return { ms: median(times), requests, bare: loop }
}

/** Runs the bare loop once. Throws where it has not found the changes. */
async function bareChanges(child: ChildProcess): Promise<BareChanges> {
  const done = messageFrom<BareChanges & { found: number }>(child, () => true)
  child.send('sync')
  const { found, ...times } = await done
  if (found !== CHANGED) throw new Error(`the bare loop found ${found} changes of ${CHANGED}`)
  return times
}

async function reconcile(sandbox: SandboxProcess, daemon: DaemonProcess): Promise<Changes['reconcile']> {
  await sandbox.command('change-silently', CHANGED)
  await daemon.idle()
  const { facts } = await daemon.run('osv', 'reconcile')
  const whole = Number(facts['archiveBytes'])
  const fetched = whole - Number(facts['savedBytes'])
  return { fetched, whole, found: Number(facts['silentChanges']) }
}

/** A start over a full folder, milliseconds: from the loaded program and from the start of the process to ready, and to all threads. */
export interface Start {
  readonly ms: number
  readonly loadedMs: number
  readonly threadsMs: number
}

/** Starts of which the median counts. */
const STARTS = 5

/** Starts a daemon over a folder that a stopped one left, several times. */
export async function restart(upstream: string, dir: string): Promise<Start> {
  const starts: Start[] = []
  while (starts.length < STARTS) starts.push(await startOnce(upstream, dir))
  const middle = (of: (start: Start) => number): number => median(starts.map(of))
  return {
    ms: middle(({ ms }) => ms),
    loadedMs: middle(({ loadedMs }) => loadedMs),
    threadsMs: middle(({ threadsMs }) => threadsMs),
  }
}

/** Starts a daemon, and asks it from then on whether it is ready. */
async function startOnce(upstream: string, dir: string): Promise<Start> {
  const port = await freePort()
  const state = { isOver: false }
  const ready = firstReady(port, state)
  try {
    const daemon = await startDaemon(upstream, dir, { PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}` })
    const ms = (await ready) - daemon.startedAt
    await daemon.stop()
    return { ms, loadedMs: daemon.loadedMs + ms, threadsMs: daemon.startMs }
  } finally {
    state.isOver = true
  }
}

/** A daemon that is not ready so long after its start is not measured, milliseconds. */
const PATIENCE_MS = 60_000

/** Resolves when a daemon on this port calls itself ready, with the time, Unix milliseconds; NaN when it does not, or nobody waits. */
async function firstReady(port: number, state: { readonly isOver: boolean }): Promise<number> {
  const now = (): number => performance.timeOrigin + performance.now()
  for (const until = now() + PATIENCE_MS; !state.isOver && now() < until; await delay(2)) {
    const answer = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => null)
    if (answer?.ok === true) return now()
  }
  return Number.NaN
}

/** Writing `all.zip` again from the store, milliseconds, beside only reading the same rows. */
export interface Rebuilt {
  readonly ms: number
  readonly readMs: number
  readonly bytes: number
}

/** Rebuilds the archive of a stopped daemon's folder in this process, as the sync thread does it. */
export async function rebuild(dir: string): Promise<Rebuilt> {
  const store = openWrites(dir)
  try {
    const reading: number[] = []
    const building: number[] = []
    for (let round = 0; round < 5; round++) {
      let started = performance.now()
      let bytes = 0
      for (const [, , , body] of store.osv.eachContent()) bytes += body.length
      reading.push(performance.now() - started)
      if (bytes === 0) throw new Error('nothing was read')
      started = performance.now()
      await Promise.resolve(buildArchive(store.osv, derivedDir(dir), () => true))
      building.push(performance.now() - started)
    }
    const { size } = statSync(join(derivedDir(dir), store.osv.readArchive()?.file ?? ''))
    return { ms: median(building), readMs: median(reading), bytes: size }
  } finally {
    store.close()
  }
}
