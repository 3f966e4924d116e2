import { type ServedPin, snapshotStamp } from '../../store/pin.ts'
import type { PinnedReads } from '../../store/reads.ts'

/** Reads whose pin moves only to a state that was released. */
export interface GatedReads extends PinnedReads {
  readonly servedPin: ServedPin
  /** From now on the state with these snapshots is served, as soon as it is the newest; null: no other than now. */
  release(stamp: string | null): void
  /** Names the newest snapshots. */
  newest(): string
}

/**
 * Keeps the pin of a store at what is served. Commits that change no snapshot move it as ever, so that the write-ahead log
 * is copied. `keepsBack`: as of `ServedPin`.
 */
export function gateReads(reads: PinnedReads, keepsBack = true): GatedReads {
  const calls: ((stamp: string) => void)[] = []
  let served = snapshotStamp(reads.pinned)
  let released: string | null = null
  let known = { commits: -1, stamp: served }
  const newest = (): string => {
    const commits = reads.commits()
    if (known.commits !== commits) known = { commits, stamp: snapshotStamp(reads.live) }
    return known.stamp
  }
  const moved = (): void => {
    served = snapshotStamp(reads.pinned)
    for (const call of calls) call(served)
  }
  return {
    ...reads,
    servedPin: { stamp: () => served, keepsBack, onMoved: (call) => void calls.push(call) },
    newest,
    release: (stamp) => void (released = stamp),
    refresh() {
      const stamp = newest()
      if (stamp !== served && stamp !== released) return false
      if (!reads.refresh()) return false
      moved()
      return true
    },
    repin() {
      if (newest() !== served) return // the pin is needed
      reads.repin()
      moved()
    },
  }
}
