import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'
import type { FleetStatus } from '../domain/status.ts'
import type { NodeReport } from '../fleet/turn.ts'
import { logChanges } from './log-lines.ts'
import { type FleetThread, startFleetThread } from '../fleet/thread.ts'
import type { Schedule } from '../sync/schedule.ts'
import type { SyncThread } from '../sync/thread.ts'
import { type GatedReads, gateReads } from '../store/gated-reads.ts'
import type { PinnedReads } from '../store/reads.ts'
import { type FleetKnowledge, dueAt, fleetStatusOf, nothingKnown, deliveryRefusal, waitOf } from './fleet-status.ts'

/** What a mirror of a fleet is wired from. */
interface FleetOptions {
  readonly config: Config
  readonly version: string
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly now?: () => number
  readonly offline?: boolean
  readonly reads: PinnedReads
  /** Another generation may be served: the serving side is to look. */
  readonly onReleased: () => void
  /** Runs may start again. */
  readonly onServed: () => void
  /** This mirror leads the fleet from now on, or does not any more. */
  readonly onLead: (leads: boolean) => void
}

/** A mirror's part in a fleet. */
export interface RunningFleet {
  /** What is served: the newest generation that is active. */
  readonly reads: GatedReads
  /** Whether this mirror syncs and publishes now. */
  leads(): boolean
  /** Whether a run may start: while this mirror leads, and nothing that it stored waits to be served. */
  mayRun(): boolean
  /** A run ended, which may have published a snapshot. */
  committed(): void
  readonly status: () => FleetStatus
  /** Why a delivery is not taken here: only the leader syncs; null: this mirror leads. */
  refusal(): string | null
  /** The same options for the relay: only the leader passes events on. */
  relayed<Options extends { readonly config: Config }>(options: Options): Options
  /** Takes part from now on; `address`: where this mirror can be reached. */
  begin(address: string): void
  /** Takes over the settings that are in force. */
  apply(): void
  close(): Promise<void>
}

/** What of the running program leads a fleet, or follows. */
interface Led {
  readonly server?: { snapshotChanged(): void }
  readonly thread?: SyncThread
  readonly relay?: { restart(): void }
  schedule?: Schedule
  startSchedule?: (sync: Config['sync']) => Schedule
  /** Starts the schedule. */
  lead?: () => void
}

/** Takes part in a fleet if the settings name one: this mirror syncs and relays only while it leads. */
export function joinFleet(
  options: Pick<FleetOptions, 'config' | 'version' | 'log' | 'now' | 'reads' | 'offline'>,
  on: Led,
): RunningFleet | undefined {
  if (options.config.fleet.url === null) return undefined
  if (options.offline === true) {
    options.log.warn({}, 'fleet.url: offline, so this mirror serves what it has and follows no fleet')
    return undefined
  }
  return startFleet({
    ...options,
    onReleased: () => on.server?.snapshotChanged(),
    onServed() {
      on.thread?.checkpoint() // the pin has moved on, so the log can be copied
      on.thread?.resume()
    },
    onLead(leads) {
      on.schedule?.stop()
      delete on.schedule
      delete on.startSchedule
      on.relay?.restart()
      if (leads) on.lead?.()
      else on.thread?.abort() // its lock would keep the next generation from being stored
      on.thread?.resume()
    },
  })
}

/**
 * Takes part in a fleet: gates what is served to the generations that are active, and tells when this mirror leads. Without
 * the store it serves what it has.
 */
function startFleet(options: FleetOptions): RunningFleet {
  const { config, version, log, now = Date.now, onLead } = options
  const reads = gateReads(options.reads)
  const known = nothingKnown()
  let thread: FleetThread | null = null
  let led = false
  const leads = (): boolean => leadsAt(known, now())
  const parts = { ...options, now, reads, known }
  const tell = (): void => {
    if (leads() === led) return
    led = !led
    if (led) log.info({ epoch: known.report?.leads }, 'fleet: this mirror leads: it syncs and publishes')
    else log.warn({}, 'fleet: this mirror does not lead any more: it follows the one that does')
    onLead(led)
  }
  let stored = reads.newest()
  const commit = (): void => {
    stored = reads.newest()
    noteHolding(parts)
    thread?.committed()
  }
  const watch = setInterval(() => {
    tell()
    if (reads.newest() !== stored) commit() // by another process, such as `patchmirror sync`
  }, WATCH_MS).unref()
  return {
    reads,
    leads,
    mayRun: () => leads() && known.report?.paused !== true && reads.newest() === reads.servedPin.stamp(),
    committed: commit,
    status: () => fleetStatusOf(parts, leads()),
    refusal: () => (leads() ? null : deliveryRefusal(known.report)),
    relayed: (options) => ({ ...options, config: relayedWhile(leads, options.config) }),
    begin(address) {
      const { fleet, bundle, data, history } = config
      thread = startFleetThread({
        config: { fleet, bundle, data, history },
        version,
        address,
        onReport(report, traffic) {
          logChanges(log, known.report, report)
          Object.assign(known, { report, traffic, fault: null })
          noteReport(parts, report)
          serve(parts)
          tell()
          const { served, lagSeconds } = fleetStatusOf(parts, led)
          thread?.served(served, lagSeconds)
        },
        onFault: (message) => noteFault(parts, message),
      })
    },
    apply: () => thread?.apply({ ...config.fleet }),
    async close() {
      clearInterval(watch)
      if (known.activation !== null) clearTimeout(known.activation)
      await thread?.close()
    },
  }
}

/** The settings of a relay that has its targets only while this mirror leads. */
function relayedWhile(leads: () => boolean, config: Config): Config {
  const relay = { get: () => (leads() ? config.relay : { ...config.relay, targets: [] }) }
  return Object.defineProperty({ ...config }, 'relay', relay)
}

function noteFault({ known, now, log }: Parts, message: string): void {
  known.fault = message
  known.failingSince ??= now()
  log.error({}, `fleet: ${message}`)
}

/** How often the end of the own lease and commits of other processes are looked for, milliseconds. */
const WATCH_MS = 1_000

interface Parts {
  readonly config: Config
  readonly log: FleetOptions['log']
  readonly now: () => number
  readonly reads: GatedReads
  readonly known: FleetKnowledge
  readonly onReleased: () => void
  readonly onServed: () => void
}

/** Whether this mirror leads: by the time of day, which a suspended machine knows, and by the one that elapsed, which none can set. */
function leadsAt({ report, leaseEnds }: FleetKnowledge, now: number): boolean {
  if (report === null || report.leads === null) return false
  const { leadsUntil } = report
  return leadsUntil === null || (leadsUntil > now && leaseEnds > performance.now())
}

/** Serves the stored generation: a leader at its activation, as all others do; a follower stored it then. */
function serve(parts: Parts): void {
  const { reads, known, now, onReleased } = parts
  const target = known.report?.applied ?? null
  if (known.activation !== null) clearTimeout(known.activation)
  known.activation = null
  if (target === null) return
  if (target.generation === known.served && target.stamp === reads.servedPin.stamp()) return
  const wait = leadsAt(known, now()) && known.served > 0 ? waitOf(known, target, now()) : 0
  if (wait > 0) {
    known.activation = setTimeout(() => serve(parts), Math.min(wait, MAX_WAIT_MS))
    return
  }
  reads.release(target.stamp)
  onReleased()
  // Otherwise newer snapshots were committed since: they are published next.
  if (reads.servedPin.stamp() !== target.stamp) return
  known.served = target.generation
  noteLag(parts)
  noteHolding(parts)
  parts.onServed()
}

/** Longest delay of a timer. */
const MAX_WAIT_MS = 2 ** 31 - 1

function noteReport(parts: Parts, { failing, stored, leadsUntil }: NodeReport): void {
  const { known, now } = parts
  known.leaseEnds = performance.now() + (leadsUntil ?? Infinity) - now()
  if (known.served === 0) known.served = stored
  if (failing === null) known.failingSince = null
  else known.failingSince ??= now()
  noteLag(parts)
  noteHolding(parts)
}

function noteLag(parts: Parts): void {
  const { known } = parts
  const newest = known.report?.newest ?? null
  if (newest === null || newest.generation <= known.served) known.behindSince = null
  else known.behindSince ??= dueAt(known, newest, parts.now())
}

function noteHolding({ reads, known, now }: Parts): void {
  if (reads.newest() === reads.servedPin.stamp()) known.holdingSince = null
  else known.holdingSince ??= now()
}
