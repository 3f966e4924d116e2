import { messageOf } from '../../base/errors.ts'
import type { RefreshOutcome } from '../../base/domain/event-types.ts'
import { type EventTarget, targetKey, targetsOf } from '../../base/domain/image-reference.ts'
import type { Settlement } from '../../store/webhooks/inbox.ts'
import {
  type AnnouncedReader,
  type Visibility,
  type Waiting,
  LONGEST_WAIT_MS,
  afterArrival,
  afterFailure,
  afterRefresh,
  visibilityOf,
} from './settlement.ts'

/**
 * Rows per refresh, by the number of their earlier failures. Failing rows are retried in progressively smaller
 * batches, which isolates a row that fails every refresh.
 */
const BATCH_SIZES: readonly number[] = [Infinity, Infinity, 64, 8]
/**
 * While every refresh fails, every n-th attempt retries all due rows: during an outage the cost does not grow with their
 * number. The attempts between them try single rows, to find one that fails alone.
 */
const ALL_TOGETHER = 9

/** Factor by which the batch size grows with every successful refresh, so that a backlog is processed soon after an outage. */
const GROWTH = 4

/** What was tried before. */
interface Tried {
  readonly refreshes: number
  /** Since the last one that succeeded. */
  readonly failuresInRow: number
  /** Since the last one that failed. */
  readonly successesInRow: number
}

/**
 * Returns the rows of the next refresh out of those that are due. New rows are not batched with failed ones; the two groups
 * alternate, so neither waits for long. Among the failed ones, the row that has been due for longest is first.
 */
export function chooseBatch(due: readonly Waiting[], tried: Tried): readonly Waiting[] {
  const { refreshes, failuresInRow } = tried
  if (failuresInRow > 0 && failuresInRow % ALL_TOGETHER === 0) return due
  const fresh = due.filter(({ attempts }) => attempts === 0)
  const failed = due.filter(({ attempts }) => attempts > 0).sort((a, b) => a.dueAt - b.dueAt)
  const [first] = failed
  if (first === undefined || (fresh.length > 0 && refreshes % 2 === 0)) return fresh
  const peers = failed.filter(({ attempts }) => attempts === first.attempts)
  const batchSize = Math.max(BATCH_SIZES[first.attempts] ?? 1, GROWTH ** tried.successesInRow)
  return withSameTarget(peers.slice(0, batchSize), due)
}

/** Adds the rows of the same target: one request answers all of them. */
function withSameTarget(chosen: readonly Waiting[], due: readonly Waiting[]): readonly Waiting[] {
  const targets = new Set(chosen.map(({ target }) => targetKey(target)))
  return due.filter(({ target }) => targets.has(targetKey(target)))
}

/** The inbox as a wave of events uses it; each call is answered by another thread and may reject. */
export interface WaitingRows {
  /** Rows that are due and have ids above `after`, oldest first; `longestWait`: no row is postponed for longer, milliseconds. */
  readonly pending: (now: number, limit: number, after: number, longestWait: number) => Promise<readonly Waiting[]>
  /** Dead letters with ids below `before`, newest first. */
  readonly dead: (limit: number, before: number) => Promise<readonly Waiting[]>
  readonly settle: (settled: readonly Settlement[]) => Promise<void>
  /** Unix milliseconds; null: nothing is pending. */
  readonly nextDueAt: () => Promise<number | null>
}

/** Where refreshes are run: the sync thread. */
export interface RefreshRunner {
  /** Fetches what events name, and what changed besides; without targets only the latter. */
  readonly refresh: (targets: readonly EventTarget[]) => Promise<RefreshOutcome>
}

/** Rows that travel between the threads at once: small enough not to be felt by readers. */
const PAGE = 1000
/** Targets looked up between two pauses for other work; dead letters looked at by a pass. */
const LOOKS = 50

/** Returns all rows that are due, oldest first. */
export async function readDue(inbox: WaitingRows, now: number): Promise<Waiting[]> {
  const due: Waiting[] = []
  for (;;) {
    const page = await inbox.pending(now, PAGE, due.at(-1)?.id ?? 0, LONGEST_WAIT_MS)
    due.push(...page)
    if (page.length < PAGE) return due
  }
}

/** Runs one refresh for all rows. One that fails checked nothing. */
export async function refreshBatch(runner: RefreshRunner, batch: readonly Waiting[]): Promise<RefreshOutcome> {
  const targets = new Map<string, EventTarget>()
  for (const target of batch.flatMap(({ target }) => (target === null ? [] : targetsOf(target))))
    targets.set(targetKey(target), target)
  try {
    return await runner.refresh([...targets.values()])
  } catch (error) {
    const reason = messageOf(error)
    return { ok: false, reason, imageReason: reason }
  }
}

/** Returns the rows whose images a refresh checked: all of them, or none. */
export function checkedBy({ imageReason }: RefreshOutcome, batch: readonly Waiting[]): readonly Waiting[] {
  return imageReason === null ? batch : []
}

/** Returns why a refresh failed for the rows: another source does not fail one whose images can be looked for; null: it did not. */
export function failureOfRefresh(
  batch: readonly Waiting[],
  { ok, reason, imageReason }: RefreshOutcome,
  seen: Seen,
): string | null {
  if (ok) return null
  if (imageReason === null && batch.every((row) => isSeen(seen, row))) return null
  return reason ?? 'no reason given'
}

/** Whether it is known what readers see of what a row names. */
function isSeen(seen: Seen, { target }: Waiting): boolean {
  return (seen.get(targetKey(target))?.visibility ?? null) !== null
}

/** What readers see of a target, or why that is unknown. */
interface Found {
  readonly visibility: Visibility
  readonly failure: string | null
}

/** What readers see, by target. */
type Seen = ReadonlyMap<string, Found>

const WORST: readonly Visibility[] = ['absent', 'other digest', 'partly', 'alone', 'visible', null]

/** What is seen of a delivery that names several targets is what is seen of the worst of them. */
function worstOf(visibilities: readonly Visibility[]): Visibility {
  return WORST.find((visibility) => visibilities.includes(visibility)) ?? null
}

/** Looks up what readers see of each target of the rows; yields to other work between some of them. */
export async function lookForTargets(
  batch: readonly Waiting[],
  catalog: AnnouncedReader | null,
  breathe: () => Promise<void>,
): Promise<Seen> {
  const seen = new Map<string, Found>()
  for (const { target } of batch) {
    const key = targetKey(target)
    if (target === null || seen.has(key)) continue
    if (seen.size % LOOKS === LOOKS - 1) await breathe()
    try {
      const visibilities = targetsOf(target).map((one) => visibilityOf(one, catalog))
      seen.set(key, { visibility: worstOf(visibilities), failure: null })
    } catch (error) {
      seen.set(key, { visibility: null, failure: messageOf(error) })
    }
  }
  return seen
}

/**
 * Decides what becomes of the rows of a refresh that has ended: `failure` is why it failed. `random`, in [0, 1), is one
 * for all rows, so that they are due together.
 */
export function judgeBatch(
  batch: readonly Waiting[],
  seen: Seen,
  { failure, now, random }: { failure: string | null; now: number; random: number },
): Settlement[] {
  return batch.map((row) => {
    const found = seen.get(targetKey(row.target))
    // What a row names is settled by itself: another source may fail for long.
    const why = isSeen(seen, row) ? null : (failure ?? found?.failure ?? null)
    return why === null ? afterRefresh(row, found?.visibility ?? null, now) : afterFailure(row, why, now, random)
  })
}

/** Writes what became of rows into the inbox. */
export async function settleRows(inbox: WaitingRows, settled: readonly Settlement[]): Promise<void> {
  for (let at = 0; at < settled.length; at += PAGE) {
    await inbox.settle(settled.slice(at, at + PAGE))
  }
}

/** The clock, Unix milliseconds, and a pause for other work. */
interface Pacing {
  readonly now: () => number
  readonly breathe: () => Promise<void>
}

/**
 * Creates what settles dead letters whose tags a later sync brought. A call looks at some of them, the next one at the ones before,
 * so that it costs little however many there are.
 */
export function createArrivals(inbox: WaitingRows, { now, breathe }: Pacing) {
  let below = Number.MAX_SAFE_INTEGER
  return async (catalog: AnnouncedReader): Promise<void> => {
    const rows = await inbox.dead(LOOKS, below)
    below = rows.length < LOOKS ? Number.MAX_SAFE_INTEGER : (rows.at(-1)?.id ?? below)
    await breathe()
    const arrived = rows.flatMap((row) => afterArrival(row, catalog, now()) ?? [])
    if (arrived.length > 0) await inbox.settle(arrived)
  }
}
