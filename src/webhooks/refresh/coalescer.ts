import { messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'
import {
  type RefreshRunner,
  type WaitingRows,
  checkedBy,
  chooseBatch,
  createArrivals,
  failureOfRefresh,
  judgeBatch,
  lookForTargets,
  readDue,
  refreshBatch,
  settleRows,
} from './batch.ts'
import { type AnnouncedReader, pauseMs } from './settlement.ts'

/** What the coalescer is made from. Times in unix milliseconds. */
interface CoalescerDeps {
  readonly debounceMs: number
  readonly inbox: WaitingRows
  readonly sync: RefreshRunner
  /** As readers see it; null: no catalog is mirrored, so nothing that is announced can be seen. */
  readonly catalog: AnnouncedReader | null
  readonly time: TimeSource
  readonly log: Pick<Logger, 'warn'>
  /** Whether what is wrong with the inbox is known, and logged. */
  readonly isExplained: () => boolean
}

/** Clock, timers and chance. */
export interface TimeSource {
  /** Unix milliseconds. */
  readonly now: () => number
  /** Calls once after `ms` milliseconds, unless the returned function cancels it. */
  readonly after: (ms: number, call: () => void) => () => void
  /** In [0, 1). */
  readonly random: () => number
  /** Yields to other work during long work. */
  readonly breathe: () => Promise<void>
}

/** State of the coalescer, for status and metrics. */
interface CoalescerState {
  /** Unix milliseconds; null: none is running. */
  readonly refreshingSince: number | null
  readonly refreshes: number
  readonly failures: number
  /** Of refreshes; 0 after one that succeeded. */
  readonly failuresInRow: number
  /** Of refreshes; 0 after one that failed. */
  readonly successesInRow: number
}

/** Turns events into refreshes. */
export interface Coalescer {
  /** Takes up what is pending. */
  readonly start: () => void
  /** An event was stored that waits for a refresh. */
  readonly arrived: () => void
  /** Another process wrote to the inbox: takes up what is due, and nothing waits longer for it. Rejects as the inbox does. */
  readonly changed: () => Promise<void>
  readonly state: () => CoalescerState
  /** No refresh begins any more. One that runs is not waited for: its rows stay pending, for the next start. */
  readonly stop: () => void
}

/** Failed refreshes in a row after which new events no longer start the next one at once. */
const SERVICE_DOWN = 4
const MAX_DELAY_MS = 60_000
/** No sleep is longer: the clock may have been set, and the inbox written to by another process. */
const LONGEST_SLEEP_MS = 60_000

const NOTHING_YET: CoalescerState = {
  refreshingSince: null,
  refreshes: 0,
  failures: 0,
  failuresInRow: 0,
  successesInRow: 0,
}

/**
 * Runs one refresh at a time, and begins at most one per `debounceMs`. The first event after a quiet `debounceMs` is
 * refreshed at once; those that follow a refresh sooner wait together until `debounceMs` after the last of them, at most
 * `DEBOUNCE_MAX_MS` after the first. A row is settled only by a refresh that began after it was read here, so after it was
 * stored; until then it stays pending in the inbox, and so survives the end of this process.
 */
export function createCoalescer(deps: CoalescerDeps): Coalescer {
  const { inbox } = deps
  const { now, random, breathe } = deps.time
  const trouble = createTroubles(deps)
  const settleArrived = createArrivals(inbox, deps.time)
  const timer = createAlarm(deps.time, () => void pass())
  let wave: Wave | null = null // arrivals that no refresh has read yet
  let busy = false
  let stopped = false
  const isStopped = (): boolean => stopped
  let earliest = 0
  let quietFrom = 0 // an event that arrives from then on is the first after a quiet time
  let state = NOTHING_YET

  /** Sets the alarm for the next due time. */
  const plan = async (): Promise<void> => {
    const dueAt = wave === null ? await inbox.nextDueAt() : null
    if (isStopped() || busy) return
    const at = wave === null ? (dueAt ?? Infinity) : endOf(wave, quietFrom, deps)
    timer.set(Math.max(at, earliest))
  }

  /** Works on a wave: due rows → batch → refresh → what readers see → settlements. */
  const work = async (): Promise<void> => {
    wave = null
    const due = await readDue(inbox, now())
    const batch = chooseBatch(due, state)
    if (batch.length === 0 || isStopped()) return
    earliest = quietFrom = now() + deps.debounceMs
    state = { ...state, refreshingSince: now() }
    const outcome = await refreshBatch(deps.sync, batch)
    if (isStopped()) return
    const seen = await lookForTargets(checkedBy(outcome, batch), deps.catalog, breathe)
    const failure = failureOfRefresh(batch, outcome, seen)
    state = counted(state, failure)
    earliest = Math.max(earliest, now() + delayMs(state.failuresInRow, random()))
    await settleRows(inbox, judgeBatch(batch, seen, { failure, now: now(), random: random() }))
  }

  /** What fails here is the inbox: nothing is lost, for nothing was settled. */
  const pass = async (): Promise<void> => {
    busy = true
    try {
      await work()
      if (deps.catalog !== null && !isStopped()) await settleArrived(deps.catalog)
      busy = false
      await plan()
      trouble.over()
    } catch (error) {
      busy = false
      if (isStopped()) return
      earliest = now() + pauseMs(trouble.met(error), random())
      timer.set(earliest)
    }
  }

  const arrived = (): void => {
    wave = { first: wave?.first ?? now(), last: now() }
    if (!busy && !stopped) void plan()
  }
  const changed = (): Promise<void> => (busy || stopped ? Promise.resolve() : plan())
  const stop = (): void => {
    stopped = true
    timer.clear()
  }
  return { start: arrived, arrived, changed, stop, state: () => state }
}

/** Counts troubles with the inbox itself in a row; logs each once, where nothing else does. */
function createTroubles({ log, isExplained }: Pick<CoalescerDeps, 'log' | 'isExplained'>) {
  let count = 0
  let logged = ''
  return {
    /** Returns how many it were in a row. */
    met(error: unknown): number {
      count += 1
      const text = `webhook events cannot be worked on, it is tried again: ${messageOf(error)}`
      if (text === logged || isExplained()) return count
      logged = text
      log.warn({}, text)
      return count
    },
    over(): void {
      count = 0
      logged = ''
    },
  }
}

interface Wave {
  first: number
  last: number
}

/** How long events wait for more of them at most, milliseconds: most releases have announced all their tags by then. */
const DEBOUNCE_MAX_MS = 30_000

/** When the refresh for a wave begins, unix milliseconds. */
function endOf({ first, last }: Wave, quietFrom: number, { debounceMs }: CoalescerDeps): number {
  if (first >= quietFrom) return first
  return Math.min(last + debounceMs, first + DEBOUNCE_MAX_MS)
}

/** One alarm at most; a new time takes the place of the old one. */
function createAlarm({ now, after }: TimeSource, ring: () => void) {
  let cancel: (() => void) | null = null
  const clear = (): void => {
    cancel?.()
    cancel = null
  }
  return {
    clear,
    set(at: number): void {
      clear()
      const sleep = Math.min(Math.max(0, at - now()), LONGEST_SLEEP_MS)
      cancel = after(sleep, () => {
        cancel = null
        ring()
      })
    },
  }
}

function delayMs(failuresInRow: number, random: number): number {
  if (failuresInRow < SERVICE_DOWN) return 0
  return Math.min(MAX_DELAY_MS, pauseMs(failuresInRow - SERVICE_DOWN + 1, random))
}

function counted(state: CoalescerState, failure: string | null): CoalescerState {
  const refreshes = state.refreshes + 1
  const ended = { ...state, refreshingSince: null, refreshes }
  if (failure === null) {
    return { ...ended, failuresInRow: 0, successesInRow: state.successesInRow + 1 }
  }
  const failuresInRow = state.failuresInRow + 1
  const failures = state.failures + 1
  return { ...ended, failures, failuresInRow, successesInRow: 0 }
}
