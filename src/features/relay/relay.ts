import { DAY_MS } from '../../base/time.ts'
import { messageOf } from '../../base/errors.ts'
import { announce } from '../../store/changes/message.ts'
import { nameStorageError } from '../../store/database/faults.ts'
import type { Reads } from '../../store/reads.ts'
import { timeOfAges } from '../../store/runs/age-limit.ts'
import {
  type DeliveryResult,
  type DueDelivery,
  RELAY_DAYS,
  type RelayOutbox,
  type RelayTarget,
} from '../../store/webhooks/outbox.ts'
import type { TargetSetting, UnsetTarget } from '../../store/webhooks/target-settings.ts'
import { announceFindings } from '../../store/findings/message.ts'
import type { FindingsReads } from '../../store/findings/reads.ts'
import { LONGEST_PAUSE_MS, type TargetResponse, isDue, outcomeOf } from './delivery-rule.ts'
import { findingsMessage, snapshotMessage } from './message.ts'
import { type RelayStateChange, createStateChanges } from './state-changes.ts'

/** Settings of the relay. */
export interface RelaySettings {
  readonly targets: readonly TargetSetting[]
  readonly events: readonly string[]
  /** Requests at the same time to one target. */
  readonly concurrency: number
}

/** Dependencies of the relay. */
interface RelayDeps extends Pick<FindingsDeps, 'findings' | 'servesFindings'> {
  readonly settings: RelaySettings
  readonly outbox: RelayOutbox
  /** Reads of mirror.db; null while there is none. */
  readonly reads: () => Pick<Reads, 'changes' | 'secrets' | 'runs' | 'snapshots' | 'osv'> | null
  /** Whether another connection wrote to the outbox since the last call. Of the store, `tick` and `judged` are called. */
  readonly changed: () => boolean
  /** Served position of the change log: announced snapshots must be readable. */
  readonly served: () => number
  /** Sends a delivery to a URL; never rejects. */
  readonly send: (url: string, delivery: DueDelivery) => Promise<TargetResponse>
  /** Unix milliseconds. */
  readonly now: () => number
  /** In [0, 1). */
  readonly random: () => number
  /** Called with a fault of the store; the work is retried. */
  readonly onFault: (message: string) => void
  /** Called when a target begins to fail, is disabled, or has recovered. */
  readonly onTurn: (turn: RelayStateChange) => void
  /** Called with a target that the settings do not have: at the start while something waits for it, and when it is forgotten. */
  readonly onUnset: (target: UnsetTarget, is: 'paused' | 'forgotten') => void
}

/** Relays events. */
export type Relay = ReturnType<typeof createRelay>

const BATCH = 50
/** Interval of pruning the outbox, milliseconds. */
const PRUNE_MS = 60_000
/** Time after the start, or a jump of the clock, in which nothing is given up, milliseconds. */
const GRACE_MS = 600_000
/** A step of the clock that is followed, milliseconds; smaller ones delay nothing for long. */
const SET_BACK_MS = 1_000
/** Pause after a fault of the store, milliseconds: what cannot be marked as sent would be sent repeatedly. */
const FAULT_PAUSE_MS = 5_000

/**
 * Collects events into the outbox, sends what is due, and stores the results. Crash safety: an event is in the outbox
 * before it counts as relayed, in one transaction with the cursor; a delivery is removed only after its target answered
 * 2xx. So a killed process at most sends events again, under the same webhook-id.
 */
export function createRelay(deps: RelayDeps) {
  const { settings, outbox, now, onFault } = deps
  const active = new Map<string, Promise<void>>()
  let stopped = false
  let pausedUntil = 0
  let settled = [] as DeliveryResult[]
  const prune = createPruning(deps)
  const turns = createTurns(deps)
  const tags = createFindingsCollector(deps)
  for (const one of outbox.replaceTargets(settings.targets, now())) deps.onUnset(one, 'paused')
  const reportStateChanges = createStateChanges(outbox, deps.onTurn)
  const fault = (error: unknown): void => {
    pausedUntil = now() + FAULT_PAUSE_MS
    onFault(messageOf(nameStorageError(error, null)))
  }
  /** Stores the results of one event-loop iteration in one transaction; pauses stay as long as they were where the clock was set back. */
  const flush = (setBackMs = 0): void => {
    if (settled.length === 0 && setBackMs < SET_BACK_MS) return
    try {
      if (setBackMs >= SET_BACK_MS) outbox.moveBack(setBackMs, now())
      outbox.settle(settled)
      reportStateChanges(new Set(settled.map(({ target }) => target)))
    } catch (error) {
      fault(error) // they are sent again: at least once
    }
    settled = []
  }
  const start = (target: RelayTarget, delivery: DueDelivery): void => {
    const attempt = deps.send(target.url, delivery).then((answer) => {
      if (stopped) return
      if (settled.length === 0) setImmediate(tick)
      settled.push(settle(deps, target, delivery, answer))
    })
    active.set(keyOf(delivery), attempt)
    void attempt.finally(() => active.delete(keyOf(delivery)))
  }
  const tick = (): void => {
    if (stopped) return
    flush(turns.begun())
    if (!isDue(pausedUntil, now(), FAULT_PAUSE_MS)) return
    try {
      prune()
      collect(deps, tags)
      for (const [target, delivery] of listSendable(deps, active)) start(target, delivery)
      turns.ended()
    } catch (error) {
      fault(error)
    }
  }
  return {
    /** Collects new events and starts due deliveries. */
    tick,
    /**
     * The same, when there may be something to do: others wrote, a delivery is due, or the last time is a minute ago. Call it
     * often: otherwise it is cheap.
     */
    poll: turns.pollOf(tick),
    /** The tags were judged again: the next `tick` collects what changed in their findings. */
    judged: tags.judged,
    /** Resolves when no request is active and all results are stored. */
    idle: (): Promise<void> => untilIdle(active, () => settled.length, flush),
    /** Stops sending; active deliveries are sent again after the next start. */
    stop(): void {
      flush()
      stopped = true
    },
  }
}

/** Waits until no delivery is being sent, and stores the results. */
async function untilIdle(
  active: ReadonlyMap<string, Promise<void>>,
  countSettled: () => number,
  flush: () => void,
): Promise<void> {
  while (active.size > 0 || countSettled() > 0) {
    await Promise.all(active.values())
    flush()
  }
}

/**
 * Returns a function that gives up old deliveries. After the start or a jump of the clock it waits: pending deliveries
 * are tried first, and the clock may be corrected.
 */
function createPruning(deps: RelayDeps): () => void {
  const { outbox, now, onUnset } = deps
  let seenAt = -Infinity
  let dueAt = 0
  return () => {
    const at = now()
    if (at - seenAt > DAY_MS) dueAt = at + GRACE_MS
    seenAt = at
    if (!isDue(dueAt, at, GRACE_MS)) return
    for (const one of outbox.prune(oldestKept(deps))) onUnset(one, 'forgotten')
    dueAt = at + PRUNE_MS
  }
}

/** Events before this time are given up, Unix milliseconds. */
function oldestKept({ reads, now }: RelayDeps): number {
  const store = reads()
  const time = store === null ? now() : timeOfAges(store, now())
  return time - RELAY_DAYS * DAY_MS
}

/**
 * Returns the deliveries to send now: each target has its own limit, so a slow one delays no other. A failing one has
 * one.
 */
function listSendable(
  { settings, outbox, now }: RelayDeps,
  active: ReadonlyMap<string, unknown>,
): [RelayTarget, DueDelivery][] {
  return outbox.listTargets().flatMap((target) => {
    const at = { now: now(), longestMs: LONGEST_PAUSE_MS }
    if (!(target.state === 'ok' || target.state === 'failing') || !isDue(target.dueAt, at.now, at.longestMs)) return []
    const own = [...active.keys()].filter((key) => key.startsWith(`${target.id} `)).length
    const free = (target.state === 'ok' ? settings.concurrency : 1) - own
    if (free <= 0) return []
    const due = outbox.listDue({ target: target.id, ...at, limit: free + own })
    const fresh = due.filter((delivery) => !active.has(keyOf(delivery))).slice(0, free)
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

/** Adds new events to the outbox. */
function collect(deps: RelayDeps, tags: ReturnType<typeof createFindingsCollector>): void {
  const { settings, outbox, reads, now } = deps
  const webhooks = settings.targets.length > 0 && settings.events.includes('webhook')
  for (;;) {
    const ready = outbox.listReady(BATCH)
    if (ready.length === 0) break
    outbox.passOn(ready, webhooks, now())
  }
  const store = reads()
  if (store === null) return
  collectSnapshots(deps, store)
  tags.collect(store)
}

/**
 * Adds the snapshots published since the first start. Older ones are skipped, and so are those published while no target
 * wants snapshots, or before a target was added: the cursor moves on, and each target has its own first position.
 */
function collectSnapshots(
  { settings, outbox, served, now }: RelayDeps,
  store: NonNullable<ReturnType<RelayDeps['reads']>>,
): void {
  const cursor = outbox.cursors.snapshot
  const instance = store.secrets.readInstance()
  const last = store.changes.lastLogged()
  const known = cursor.read(instance)
  const wanted = settings.targets.length > 0 && settings.events.includes('snapshot')
  if (known === null || known > last || (!wanted && known < last)) cursor.skipTo(instance, last)
  if (cursor.hasNewTargets()) cursor.place(last)
  const until = Math.min(served(), last)
  let from = cursor.read(instance) ?? last
  while (wanted && from < until) {
    const rows = store.changes.listLogged(from, BATCH).filter(({ id }) => id <= until)
    const end = rows.at(-1)?.id ?? until
    const messages = rows.map((row) => {
      const message = snapshotMessage(instance, row, announce(store, row))
      return { ...message, deliver: true, log: row.id }
    })
    outbox.passOnLog('snapshot', { messages, instance, end }, now())
    from = end
  }
}

/** Dependencies of the turns. */
interface TurnDeps {
  readonly outbox: Pick<RelayOutbox, 'nextDueAt'>
  /** Whether another connection wrote since the last call. */
  readonly changed: () => boolean
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Longest time between two turns, milliseconds. */
const LONGEST_MS = 60_000

/**
 * Tells when a turn may find something to do: others wrote, a delivery is due, the last turn failed or is a minute ago. A
 * clock that was changed is noticed by that minute.
 */
function createTurns({ outbox, changed, now }: TurnDeps) {
  let dueAt = -Infinity
  let beganAt = -Infinity
  const isDue = (): boolean => {
    try {
      const at = now()
      return changed() || dueAt <= at || Math.abs(at - beganAt) >= LONGEST_MS
    } catch {
      return true // the turn meets the same fault and reports it
    }
  }
  return {
    /** Returns by how much the clock was set back since the turn before, milliseconds: less by the time between the two. */
    begun(): number {
      const setBackMs = beganAt - now()
      dueAt = -Infinity
      beganAt = now()
      return setBackMs
    },
    /** The turn did everything that could be done now. */
    ended: (): void => void (dueAt = outbox.nextDueAt() ?? Infinity),
    pollOf: (turn: () => void) => (): void => {
      if (isDue()) turn()
    },
  }
}

/** What the events about findings are collected with. */
interface FindingsDeps {
  readonly settings: Pick<RelaySettings, 'targets' | 'events'>
  readonly outbox: Pick<RelayOutbox, 'cursors' | 'passOnLog'>
  /** Reads the findings of tags; null where there are none. */
  readonly findings: <T>(use: (reads: FindingsReads) => T) => T | null
  /** Whether `/-/tags/changes` is served now: what changed is announced when it is. */
  readonly servesFindings: () => boolean
  /** Unix milliseconds. */
  readonly now: () => number
  readonly onFault: (message: string) => void
}

/** Pause after the findings could not be read, milliseconds: they delay no other event. */
const RETRY_MS = 30_000

/**
 * Creates what adds changed findings of tags to the outbox. Their database is another file, which is opened for it: only at the
 * start and after `judged` is there anything to look for.
 */
function createFindingsCollector(deps: FindingsDeps) {
  const { settings, outbox, findings, servesFindings, now, onFault } = deps
  const isWanted = settings.targets.length > 0 && settings.events.includes('findings')
  let waits = true
  let isDeferred = false
  let retryAt = -Infinity
  return {
    /** The tags were judged again. */
    judged: (): void => void ([waits, isDeferred, retryAt] = [true, false, -Infinity]),
    collect(store: Pick<Reads, 'secrets'>): void {
      if (!waits || !isDue(retryAt, now(), RETRY_MS)) return
      if (isDeferred && !servesFindings()) return
      try {
        if (!isWanted)
          outbox.cursors.findings.forget() // what changes meanwhile is never announced
        else if (findings((reads) => collectFrom(deps, reads, store.secrets.readInstance())) === 'deferred')
          return void (isDeferred = true)
        waits = false
      } catch (error) {
        retryAt = now() + RETRY_MS
        onFault(`what changed in the findings of tags is not passed on: ${messageOf(error)}`)
      }
    },
  }
}

/**
 * Adds what was logged since the last time. A log that was not followed yet is skipped to its end: that of a new database, and
 * that from before these events were wanted. A target gets nothing from before it was added. While the findings are not
 * served, all of this is noted, and nothing is added.
 */
function collectFrom(
  { outbox, servesFindings, now }: FindingsDeps,
  reads: FindingsReads,
  mirror: string,
): 'collected' | 'deferred' {
  const state = reads.readState()
  if (state === null) return 'collected'
  const { instance } = state
  const cursor = outbox.cursors.findings
  const last = reads.lastLog()
  const known = cursor.read(instance)
  if (known === null || known > last) cursor.skipTo(instance, last)
  if (cursor.hasNewTargets()) cursor.place(last)
  if (!servesFindings()) return 'deferred'
  for (const part of announceFindings(reads, cursor.read(instance) ?? last)) {
    const message = { ...findingsMessage(mirror, part), deliver: true, log: part.last }
    outbox.passOnLog('findings', { messages: [message], instance, end: part.last }, now())
  }
  return 'collected'
}
