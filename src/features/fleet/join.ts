import type { Config } from '../../config/schema.ts'
import type { Logger } from '../../base/log.ts'
import { FLEET_PAUSED } from '../../base/domain/status.ts'
import type { NodeReport } from './turn.ts'
import { type GatedReads, gateReads } from './gated-reads.ts'
import type { Gate, GateParts } from '../../daemon/feature.ts'
import { type Supervisor, supervise } from '../../base/threads/supervisor.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import { type FleetKnowledge, deliveryRefusal, dueAt, fleetStatusOf, nothingKnown, waitOf } from './knowledge.ts'
import type { FleetStart, FromFleet, ToFleet } from './fleet.worker.ts'
import { addressForMirrors, lookRoute } from './look/route.ts'
import { type KeyTrust, fleetTrust } from '../bundles/format/keys.ts'

/** Takes part in a fleet if the settings name one: this mirror syncs and relays only while it leads. */
export function joinFleet(parts: GateParts): Gate | null {
  if (parts.config.fleet.url === null) return null
  if (!parts.offline) return startFleet(parts)
  parts.log.warn({}, 'fleet.url: offline, so this mirror serves what it has and follows no fleet')
  return null
}

/**
 * Takes part in a fleet: gates what is served to the generations that are active, and tells when this mirror leads. Without
 * the store it serves what it has.
 */
function startFleet(options: GateParts): Gate {
  const { config, log, now, onLead } = options
  const reads = gateReads(options.reads, config.fleet.role !== 'reader') // a reader stores a generation when all serve it
  const known = nothingKnown()
  let thread: Supervisor<ToFleet> | null = null
  let led = false
  let keys: KeyTrust | null = null
  const trust = (): KeyTrust => (keys ??= fleetTrust(config, now))
  const leads = (): boolean => leadsAt(known, now())
  const parts = { ...options, reads, known }
  const tell = (): void => {
    if (leads() === led) return
    led = !led
    if (led) log.info({ epoch: known.report?.leads }, 'fleet: this mirror leads: it syncs and publishes')
    else log.warn({}, 'fleet: this mirror does not lead any more: it follows the one that does')
    onLead(led)
  }
  let stored = reads.newest()
  const commit = (isLast: boolean): void => {
    stored = reads.newest()
    noteHolding(parts)
    thread?.post({ type: 'committed', isLast })
  }
  const watch = setInterval(() => {
    tell()
    if (reads.newest() !== stored) commit(false) // by another process, such as `patchmirror sync`
  }, WATCH_MS).unref()
  return {
    reads,
    leads,
    mayRun: () => leads() && known.report?.paused !== true && reads.newest() === reads.servedPin.stamp(),
    committed: commit,
    status: () => fleetStatusOf(parts, leads()),
    refusal: () => (leads() ? null : deliveryRefusal(known.report)),
    plugins: [lookRoute({ known, trust, look: (generation) => thread?.post({ type: 'look', generation }) })],
    begin(listening) {
      const start = startOf(options, listening)
      thread = supervise<ToFleet, FromFleet>({
        file: workerFile('fleet.worker', import.meta.url),
        data: () => start,
        limits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 },
        stopTimeoutMs: STOP_TIMEOUT_MS,
        onMessage(message) {
          noteMessage(parts, message)
          tell()
          const { served, lagSeconds } = fleetStatusOf(parts, led)
          thread?.post({ type: 'served', generation: served, lagSeconds })
        },
        onFailed: (message) => noteFault(parts, `${message}; it is tried again`),
      })
    },
    apply: () => thread?.post({ type: 'settings', settings: { ...config.fleet } }),
    async close() {
      clearInterval(watch)
      if (known.activation !== null) clearTimeout(known.activation)
      await thread?.stop()
    },
  }
}

function startOf({ config, version }: GateParts, listening: string): FleetStart {
  const { fleet, bundle, catalog, data, upstream, server } = config
  return {
    config: { fleet, bundle, catalog, data, upstream: { ...upstream, apiKey: null, token: null } },
    version,
    url: server.publicUrl ?? listening,
    address: addressForMirrors(config, listening),
  }
}

function noteMessage(parts: Parts, { report, traffic, own, unnotified }: FromFleet): void {
  const { log, known } = parts
  logChanges(log, known.report, report)
  logUnnotified(log, known.unnotified, unnotified)
  Object.assign(known, { report, traffic, own, unnotified, fault: null })
  noteReport(parts, report)
  serve(parts)
}

function noteFault({ known, now, log }: Parts, message: string): void {
  known.fault = message
  known.failingSince ??= now()
  log.error({}, `fleet: ${message}`)
}

/** How long the work in progress may take to end, milliseconds: everything is repeatable. */
const STOP_TIMEOUT_MS = 5_000

/** How often the end of the own lease and commits of other processes are looked for, milliseconds. */
const WATCH_MS = 1_000

interface Parts {
  readonly config: Config
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
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

/** Logs that the store fails or a rollback stops all syncs, and the end of it. */
function logChanges(log: Pick<Logger, 'info' | 'warn'>, before: NodeReport | null, report: NodeReport): void {
  logFailure(log, before, report)
  const { paused, newest } = report
  if (paused === (before?.paused ?? false)) return
  if (paused) log.warn({ generation: newest?.generation }, `fleet: ${FLEET_PAUSED}`)
  else log.info({}, 'fleet: the rollback was released: this mirror syncs again')
}

function logFailure(log: Pick<Logger, 'info' | 'warn'>, before: NodeReport | null, { failing }: NodeReport): void {
  const last = before?.failing ?? null
  if (failing?.message === last?.message) return
  if (failing !== null) log.warn({ refused: failing.refused }, `fleet: ${failing.message}; what is stored is served`)
  else log.info({}, 'fleet: this mirror follows and publishes again')
}

function logUnnotified(log: Pick<Logger, 'info'>, before: string | null, unnotified: string | null): void {
  if (unnotified === before) return
  if (unnotified === null)
    log.info({}, 'fleet: all other mirrors are notified of generations before they are published')
  else log.info({}, `fleet: not all other mirrors can be notified of generations, ${unnotified}`)
}
