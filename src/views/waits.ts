import type { ViewsKind } from '../store/views/generations.ts'

/** A kind whose last build left something to do. */
interface Wait {
  /** Names what was to be shown. */
  readonly wanted: string | null
  readonly since: number
  readonly ms: number
}

/**
 * Says when each kind is built next. One that waits for its retry delays no other kind, and is built `settleMs` after its last
 * try when `wantedOf` names something else than it had at that try. Times are those of `performance.now()`.
 */
export function createWaits(wantedOf: (kind: ViewsKind) => string | null, settleMs: number) {
  const waits = new Map<ViewsKind, Wait>()
  /** When a kind may be built; 0: at once. */
  const dueOf = (kind: ViewsKind): number => {
    const one = waits.get(kind)
    if (one === undefined) return 0
    return one.since + (one.wanted === wantedOf(kind) ? one.ms : Math.min(one.ms, settleMs))
  }
  return {
    dueOf,
    /** The one of these kinds that is due first. */
    first: (kinds: readonly ViewsKind[]): ViewsKind | undefined =>
      kinds.toSorted((one, other) => dueOf(one) - dueOf(other))[0],
    /** Has a kind wait for so many milliseconds, as long as `wanted` is what it is to show. */
    hold(kind: ViewsKind, wanted: string | null, ms: number): void {
      waits.set(kind, { wanted, since: performance.now(), ms })
    },
    release: (kind: ViewsKind): void => void waits.delete(kind),
  }
}

/** Longest time that a build waits for a run, milliseconds: one may take hours. */
const LONGEST_RUN_MS = 60_000
/** Interval at which it is looked whether the run has ended, milliseconds. */
const RUN_CHECK_MS = 500

/**
 * Has a build wait while the run has not ended whose snapshot it shows: what a run has in memory, and the copying of its
 * log, would be beside the build.
 */
export function createPatience(isRunning: (kind: ViewsKind) => boolean) {
  let since: number | null = null
  let isUrgent = false
  return {
    /** The next build does not wait: a client does. */
    lose: (): void => void (isUrgent = true),
    /** Milliseconds until it is looked again; 0: the build begins. */
    pauseOf(kind: ViewsKind): number {
      since ??= performance.now()
      const isLong = isUrgent || performance.now() - since >= LONGEST_RUN_MS
      if (!isLong && isRunning(kind)) return RUN_CHECK_MS
      since = null
      isUrgent = false
      return 0
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
