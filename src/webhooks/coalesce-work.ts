import { messageOf } from '../errors.ts'
import { targetKey } from './coalesce-batch.ts'
import {
  type RefreshResult,
  type Visibility,
  afterFailure,
  afterRefresh,
} from './coalesce-verdict.ts'
import { type EventTarget, type Waiting, targetsOf } from './waiting.ts'

/** The inbox as the coalescer uses it; each call is answered by another thread and may reject. */
export interface WaitingRows {
  /** Pending rows that are due and have ids above `after`, in the order of arrival. */
  readonly pending: (now: number, limit: number, after: number) => Promise<readonly Waiting[]>
  readonly settle: (settled: readonly RefreshResult[]) => Promise<void>
  /** Unix milliseconds; null: nothing is pending. */
  readonly nextDueAt: () => Promise<number | null>
}

/** How a refresh came out; `reason`: why it is not ok. */
export interface RefreshOutcome {
  readonly ok: boolean
  readonly reason: string | null
}

/** What it takes to work on a wave of events. Times in unix milliseconds. */
export interface WaveDeps {
  readonly inbox: WaitingRows
  /** Fetches what events name, and what changed besides; without targets only the latter. */
  readonly refresh: (targets: readonly EventTarget[]) => Promise<RefreshOutcome>
  /** What readers see of what was announced, now. */
  readonly look: (target: EventTarget) => Visibility
  readonly now: () => number
  /** In [0, 1). */
  readonly random: () => number
  /** Lets others take their turn in the midst of long work. */
  readonly breathe: () => Promise<void>
}

/** Rows that travel between the threads at once: small enough not to be felt by readers. */
const PAGE = 1000
/** Targets looked for between two breaths. */
const LOOKS = 50

/** All rows that are due, oldest first. */
export async function readDue({ inbox }: WaveDeps, now: number): Promise<Waiting[]> {
  const due: Waiting[] = []
  for (;;) {
    const page = await inbox.pending(now, PAGE, due.at(-1)?.id ?? 0)
    due.push(...page)
    if (page.length < PAGE) return due
  }
}

/** One refresh for all rows; says why it failed, or null. */
export async function refreshBatch(
  { refresh }: WaveDeps,
  batch: readonly Waiting[],
): Promise<string | null> {
  const targets = new Map<string, EventTarget>()
  for (const target of batch.flatMap(({ target }) => (target === null ? [] : targetsOf(target))))
    targets.set(targetKey(target), target)
  try {
    const { ok, reason } = await refresh([...targets.values()])
    return ok ? null : (reason ?? 'it does not say why')
  } catch (error) {
    return messageOf(error)
  }
}

/** Writes down what became of the rows of a refresh that has ended. */
export async function settleBatch(
  deps: WaveDeps,
  batch: readonly Waiting[],
  failure: string | null,
): Promise<void> {
  const random = deps.random() // one for all, so that they come due together
  const seen = failure === null ? await lookAll(deps, batch) : null
  const now = deps.now()
  const settled = batch.map((row) => {
    const found = seen?.get(targetKey(row.target)) ?? { sight: null, failure }
    return found.failure === null
      ? afterRefresh(row, found.sight, now)
      : afterFailure(row, found.failure, now, random)
  })
  for (let at = 0; at < settled.length; at += PAGE) {
    await deps.inbox.settle(settled.slice(at, at + PAGE))
  }
}

/** What was seen of a target, or why that cannot be told. */
interface Found {
  readonly sight: Visibility
  readonly failure: string | null
}

const WORST: readonly Visibility[] = ['absent', 'other digest', 'partly', 'visible', null]

/** What is seen of a delivery that names several targets is what is seen of the worst of them. */
function worstOf(sights: readonly Visibility[]): Visibility {
  return WORST.find((sight) => sights.includes(sight)) ?? null
}

/** What is seen of each target. */
async function lookAll(
  { look, breathe }: WaveDeps,
  batch: readonly Waiting[],
): Promise<Map<string, Found>> {
  const seen = new Map<string, Found>()
  for (const { target } of batch) {
    const key = targetKey(target)
    if (target === null || seen.has(key)) continue
    if (seen.size % LOOKS === LOOKS - 1) await breathe()
    try {
      seen.set(key, { sight: worstOf(targetsOf(target).map(look)), failure: null })
    } catch (error) {
      seen.set(key, { sight: null, failure: messageOf(error) })
    }
  }
  return seen
}
