import type { ViewsKind } from '../store/generations.ts'

/** A kind whose last build left something to do. */
interface Wait {
  /** Names what was to be shown. */
  readonly wanted: string | null
  readonly since: number
  readonly ms: number
}

/** Longest time that a build waits for a run, milliseconds: one may take hours. */
const LONGEST_RUN_MS = 60_000
/** Interval at which it is looked whether the run has ended, milliseconds. */
const RUN_CHECK_MS = 500

/** What the waits are made from. */
interface WaitsOptions {
  /** Names what a kind is to show. */
  readonly wantedOf: (kind: ViewsKind) => string | null
  /** Whether a run is under way that publishes what a kind shows. */
  readonly isRunning: (kind: ViewsKind) => boolean
  readonly settleMs: number
}

/**
 * Says when each kind is built next. One that waits for its retry, or for the end of the run whose snapshot it shows, delays no
 * other kind. A retry is `settleMs` after the last try when the kind is to show something else than at that try. A build
 * beside a run would be in memory with all that the run has not freed. Times are those of `performance.now()`.
 */
export function createWaits({ wantedOf, isRunning, settleMs }: WaitsOptions) {
  const waits = new Map<ViewsKind, Wait>()
  const runs = new Map<ViewsKind, number>() // since when a kind waits for the end of a run
  let isUrgent = false
  const retryOf = (kind: ViewsKind): number => {
    const one = waits.get(kind)
    if (one === undefined) return 0
    return one.since + (one.wanted === wantedOf(kind) ? one.ms : Math.min(one.ms, settleMs))
  }
  const runOf = (kind: ViewsKind): number => {
    const now = performance.now()
    const since = isRunning(kind) ? (runs.get(kind) ?? now) : null
    if (since === null) runs.delete(kind)
    else runs.set(kind, since)
    return since === null || isUrgent || now - since >= LONGEST_RUN_MS ? 0 : now + RUN_CHECK_MS
  }
  /** When a kind may be built; 0: at once. */
  const dueOf = (kind: ViewsKind): number => Math.max(retryOf(kind), runOf(kind))
  return {
    dueOf,
    /** When it is looked again whether a run has ended; 0: the kind waits for none. */
    runOf,
    /** The one of these kinds that is due first. Of no kinds, nothing is urgent any more. */
    first(kinds: readonly ViewsKind[]): ViewsKind | undefined {
      if (kinds.length === 0) isUrgent = false
      return kinds.toSorted((one, other) => dueOf(one) - dueOf(other))[0]
    },
    /** A client waits for what is missing: no kind waits for a run until nothing is. */
    hurry: (): void => void (isUrgent = true),
    /** Has a kind wait for so many milliseconds, as long as `wanted` is what it is to show. */
    hold(kind: ViewsKind, wanted: string | null, ms: number): void {
      waits.set(kind, { wanted, since: performance.now(), ms })
      runs.delete(kind)
    },
    release(kind: ViewsKind): void {
      waits.delete(kind)
      runs.delete(kind)
    },
  }
}

/** Creates a timer that calls back at the earliest of the times that it is set to, once; it keeps no process running. */
export function createAlarm(call: () => void) {
  let pending: { readonly timer: NodeJS.Timeout; readonly due: number } | null = null
  const clear = (): void => {
    if (pending !== null) clearTimeout(pending.timer)
    pending = null
  }
  return {
    clear,
    /** `due`: as `performance.now()`. */
    set(due: number): void {
      if (pending !== null && pending.due <= due) return
      clear()
      const ring = (): void => {
        pending = null
        call()
      }
      pending = { due, timer: setTimeout(ring, Math.max(0, due - performance.now())).unref() }
    },
  }
}
