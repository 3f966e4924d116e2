import { messageOf } from '../core/errors.ts'
import { announce } from '../store/changes/message.ts'
import type { Reads } from '../store/reads.ts'
import type {
  DueDelivery,
  RelayOutbox,
  RelayTarget,
  DeliveryResult,
  OutboxReads,
} from '../store/webhooks/outbox.ts'
import { type TargetResponse, LONGEST_PAUSE_MS, isDue, outcomeOf } from './delivery-rule.ts'
import { snapshotMessage } from './message.ts'

/** What is passed on, and how. */
export interface RelaySettings {
  readonly targets: readonly string[]
  readonly events: readonly string[]
  readonly waitVisible: boolean
  readonly maxDays: number
  /** Requests at the same time to one target. */
  readonly concurrency: number
}

/** What the relay works with. */
interface RelayDeps {
  readonly settings: RelaySettings
  readonly outbox: RelayOutbox
  /** mirror.db as it is now; null while there is none. */
  readonly reads: () => Pick<
    Reads,
    'listLogged' | 'lastLogged' | 'listNames' | 'readInstance'
  > | null
  /** How far the change log is served: who is told shall be able to read. */
  readonly served: () => number
  /** Sends a delivery to a URL; never rejects. */
  readonly send: (url: string, delivery: DueDelivery) => Promise<TargetResponse>
  /** Unix milliseconds. */
  readonly now: () => number
  /** In [0, 1). */
  readonly random: () => number
  /** A fault of the store: told, and tried again. */
  readonly onFault: (message: string) => void
  /** A target begins to fail, is disabled, or is back. */
  readonly onTurn: (turn: RelayStateChange) => void
}

/** Passes events on. */
export interface Relay {
  /** Looks what is new and what is due, and starts to send it. Call it often: it is cheap when there is nothing. */
  tick(): void
  /** Resolves when no request is under way and all that was answered is written down. */
  idle(): Promise<void>
  /** Sends nothing more; what is under way is sent again by the next start. */
  stop(): void
}

const BATCH = 50
const DAY_MS = 86_400_000
/** How often the outbox is pruned. */
const PRUNE_MS = 60_000
/** After the start, or a leap of the clock, nothing is given up for so long. */
const GRACE_MS = 600_000
/** After a fault of the store nothing is sent for so long: what cannot be marked as sent would be sent over and over. */
const FAULT_PAUSE_MS = 5_000

/**
 * Collects events into the outbox, sends what is due, and writes down what became of it. Crash reasoning: an event is in the
 * outbox before it counts as passed on, with the cursor in one transaction; a delivery leaves it only after its target
 * said 2xx. So a killed process at most sends again what it had sent, under the same webhook-id.
 */
export function createRelay(deps: RelayDeps): Relay {
  const { settings, outbox, now, onFault } = deps
  const flying = new Map<string, Promise<void>>()
  let settled: DeliveryResult[] = []
  let stopped = false
  let heldUntil = 0
  const prune = createPruning(deps)
  outbox.replaceTargets(settings.targets)
  const tellTurns = createStateChanges(outbox, deps.onTurn)

  const fault = (error: unknown): void => {
    heldUntil = now() + FAULT_PAUSE_MS
    onFault(messageOf(error))
  }
  /** What was answered within one turn of the event loop is written in one transaction. */
  const flush = (): void => {
    if (settled.length === 0) return
    try {
      outbox.settle(settled)
      tellTurns(new Set(settled.map(({ target }) => target)))
    } catch (error) {
      fault(error) // they are sent again: better twice than never
    }
    settled = []
  }
  const start = (target: RelayTarget, delivery: DueDelivery): void => {
    const key = keyOf(delivery)
    const attempt = deps.send(target.url, delivery).then((answer) => {
      if (stopped) return
      if (settled.length === 0) setImmediate(tick)
      settled.push(settle(deps, target, delivery, answer))
    })
    flying.set(key, attempt)
    void attempt.finally(() => flying.delete(key))
  }
  const tick = (): void => {
    if (stopped) return
    flush()
    if (!isDue(heldUntil, now(), FAULT_PAUSE_MS)) return
    try {
      prune()
      collect(deps)
      for (const [target, delivery] of listFree(deps, flying)) start(target, delivery)
    } catch (error) {
      fault(error)
    }
  }
  return {
    tick,
    async idle() {
      while (flying.size > 0 || settled.length > 0) {
        await Promise.all(flying.values())
        flush()
      }
    },
    stop() {
      flush()
      stopped = true
    },
  }
}

/**
 * Gives up what is too old. Not at once when the clock is suddenly a day ahead, or at the start: what waits is tried
 * before, and the clock may be set right. A clock that stays ahead by days makes everything that still waits too old.
 */
function createPruning({ settings, outbox, now }: RelayDeps): () => void {
  let seenAt = -Infinity
  let dueAt = 0
  return () => {
    const at = now()
    if (at - seenAt > DAY_MS) dueAt = at + GRACE_MS
    seenAt = at
    if (!isDue(dueAt, at, GRACE_MS)) return
    outbox.prune(at - settings.maxDays * DAY_MS)
    dueAt = at + PRUNE_MS
  }
}

/** What may be sent now: each target has places of its own, so a slow one holds up no other. A failing one has one place. */
function listFree(
  { settings, outbox, now }: RelayDeps,
  flying: ReadonlyMap<string, unknown>,
): [RelayTarget, DueDelivery][] {
  return outbox.listTargets().flatMap((target) => {
    const at = { now: now(), longestMs: LONGEST_PAUSE_MS }
    if (target.state === 'disabled' || !isDue(target.dueAt, at.now, at.longestMs)) return []
    const own = [...flying.keys()].filter((key) => key.startsWith(`${target.id} `)).length
    const free = (target.state === 'ok' ? settings.concurrency : 1) - own
    if (free <= 0) return []
    const due = outbox.listDue({ target: target.id, ...at, limit: free + own })
    const fresh = due.filter((delivery) => !flying.has(keyOf(delivery))).slice(0, free)
    return fresh.map((delivery): [RelayTarget, DueDelivery] => [target, delivery])
  })
}

function keyOf({ target, event }: DueDelivery): string {
  return `${target} ${event}`
}

function settle(
  { now, random }: RelayDeps,
  target: RelayTarget,
  { event, attempts }: DueDelivery,
  answer: TargetResponse,
): DeliveryResult {
  const at = now()
  const seen = target.failures
  const outcome = outcomeOf(answer, { attempts, targetFailures: seen, now: at, random: random() })
  return { target: target.id, event, at, seen, latest: at + LONGEST_PAUSE_MS, ...outcome }
}

/** Takes into the outbox what happened since the last look. */
function collect(deps: RelayDeps): void {
  const { settings, outbox, reads, now } = deps
  const webhooks = settings.targets.length > 0 && settings.events.includes('webhook')
  for (;;) {
    const ready = outbox.listReady(settings.waitVisible, BATCH)
    if (ready.length === 0) break
    outbox.passOn(ready, webhooks, now())
  }
  const store = reads()
  if (store !== null) collectSnapshots(deps, store)
}

/**
 * Snapshots published from the first start on; the log's older ones are nobody's news. Nor is what is published while
 * nobody is to be told, or before a target came: the place in the log goes along, and each target has one to begin at.
 */
function collectSnapshots(
  { settings, outbox, served, now }: RelayDeps,
  store: NonNullable<ReturnType<RelayDeps['reads']>>,
): void {
  const instance = store.readInstance()
  const last = store.lastLogged()
  const known = outbox.readCursor(instance)
  const wanted = settings.targets.length > 0 && settings.events.includes('snapshot')
  if (known === null || known > last || (!wanted && known < last)) outbox.skipTo(instance, last)
  if (outbox.hasNewTargets()) outbox.placeTargets(last)
  const until = Math.min(served(), last)
  let from = outbox.readCursor(instance) ?? last
  while (wanted && from < until) {
    const rows = store.listLogged(from, BATCH).filter(({ id }) => id <= until)
    const end = rows.at(-1)?.id ?? until
    const messages = rows.map((row) => {
      return { ...snapshotMessage(instance, row, announce(store, row)), deliver: true, log: row.id }
    })
    outbox.passOnSnapshots(messages, instance, end, now())
    from = end
  }
}

/** A target has come to stand otherwise. It is known by its number: its URL may hold a token. */
export type RelayStateChange = Pick<RelayTarget, 'id' | 'state' | 'reason'>

/**
 * Tells when a target stands otherwise than it was last seen, once and not for each attempt. Call what this gives with the
 * targets of the attempts that were just written down; how targets stood before the start is no news.
 */
function createStateChanges(
  outbox: Pick<OutboxReads, 'listTargets'>,
  onTurn: (turn: RelayStateChange) => void,
): (ids: ReadonlySet<number>) => void {
  const seen = new Map(outbox.listTargets().map(({ id, state }) => [id, state]))
  return (ids) => {
    for (const { id, state, reason } of outbox.listTargets()) {
      if (!ids.has(id) || seen.get(id) === state) continue
      seen.set(id, state)
      onTurn({ id, state, reason })
    }
  }
}
