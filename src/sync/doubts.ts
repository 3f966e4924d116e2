import { DAY_MS, toIso } from '../base/time.ts'
import { type Doubt, doubtedKinds } from '../base/domain/doubts.ts'
import type { Standard, GuardVerdict } from '../guard/verdict.ts'
import type { LedgerRow } from '../store/changes/guard-ledger.ts'
import { tagCounts } from '../store/findings/database.ts'
import type { RunFacts } from '../store/runs/runs.ts'
import type { SyncContext } from './context.ts'

type GuardContext = Pick<SyncContext, 'config' | 'store' | 'source' | 'now'>

/** What a run's doubts are counted by, with the ledger of the runs before it. */
export interface SourceStandard extends Standard {
  /** When the window begins, Unix milliseconds: nothing older is compared or counted. */
  readonly since: number
}

/** Creates what the doubts of a run are counted by. `totalOf`: number of what is stored of what a kind counts. */
export function createStandard(
  { config, store, source, now }: GuardContext,
  totalOf: (kind: Doubt) => number,
): SourceStandard {
  const settings = config.guard
  const begin = windowBegin({ config, store, source, now })
  return {
    settings,
    removal: { count: settings.removedCount, share: settings.removedShare },
    totalOf,
    since: begin,
    settled: new Set(store.guardLedger.listSettled(source, begin)),
    earlier: (kind) => store.guardLedger.listLedger(source, kind, begin),
    tagsOf: (records) => tagCounts(config.data.dir, records),
  }
}

/** Returns when the window begins. While a refusal waits, time stands still: the same change is not believed for having waited. */
function windowBegin({ config, store, source, now }: GuardContext): number {
  const published = store.snapshots.readSnapshot(source)?.runId ?? 0
  const open = store.quarantine.readHeldSince(source, published)
  return (open ?? now()) - config.guard.windowDays * DAY_MS
}

/**
 * Says against which state a run is judged: the one that was published when the window began, or the first that is known since, as
 * on a new mirror; null: there is none.
 */
function judgedAgainst(context: GuardContext): string | null {
  const { store, source } = context
  const atStart = store.changes.readLoggedAt(source, windowBegin(context))
  const state = atStart ?? store.changes.readNextLogged(source, 0) ?? store.snapshots.readSnapshot(source)
  if (state === null) return null
  const words = `the state of ${toIso(state.publishedAt).slice(0, 16).replace('T', ' ')} UTC`
  return atStart === null ? `${words}, the first that is known here` : words
}

/**
 * Accounts for what a run publishes, in its transaction: what is below the limits is counted in later runs, and what is above
 * them was reported or approved, and is not counted again. `restored`: names of what is as it was when the window began.
 */
export function accountDoubts(
  { store, source, now, runId }: GuardContext & Pick<SyncContext, 'runId'>,
  { doubted, belowRows }: GuardVerdict,
  { since }: SourceStandard,
  restored: readonly string[] = [],
): void {
  const { guardLedger } = store
  guardLedger.forgetLedger(source, since)
  for (const name of restored) guardLedger.dropFromLedger(source, name, since)
  const isRestored = new Set(restored)
  const rows = belowRows.filter(({ name }) => !isRestored.has(name))
  guardLedger.addToLedger(source, now(), bounded(rows, runId))
  const over = doubtedKinds(doubted).map(([kind]) => kind)
  guardLedger.settleLedger(source, over, now())
}

/** Rows of a kind that one run adds to the ledger: the rest is one row that counts as many. */
const MOST_ROWS = 5_000

function bounded(rows: readonly LedgerRow[], run: number): LedgerRow[] {
  const byKind = Map.groupBy(rows, ({ kind }) => kind)
  return [...byKind].flatMap(([kind, own]) => {
    if (own.length <= MOST_ROWS) return own
    const weight = own.slice(MOST_ROWS).reduce((sum, one) => sum + one.weight, 0)
    return [...own.slice(0, MOST_ROWS), { kind, name: `more of run ${run}`, weight, packages: [] }]
  })
}

/** Records in the facts of a run what is doubtful, and what hides something and is below the limits. */
export function recordDoubts(
  context: GuardContext & Pick<SyncContext, 'facts'>,
  { doubts, lines, below, belowLines, notCompared }: GuardVerdict,
): void {
  const { facts } = context
  const add = (name: string, count: number, listed: readonly string[]): void => {
    if (count === 0) return
    facts[name] = Number(facts[name] ?? 0) + count
    facts[`${name}Ids`] = [...linesOf(facts[`${name}Ids`]), ...listed]
  }
  if (notCompared > 0) facts['notCompared'] = notCompared
  add('doubtsBelowLimits', below, belowLines)
  const against = below + doubts === 0 ? null : judgedAgainst(context)
  if (against !== null) facts['judgedAgainst'] = against
  if (doubts === 0) return
  facts['doubts'] = Number(facts['doubts'] ?? 0) + doubts
  facts['doubtfulIds'] = [...linesOf(facts['doubtfulIds']), ...lines]
}

function linesOf(fact: RunFacts[string] | undefined): readonly string[] {
  return typeof fact === 'object' && fact !== null ? fact : []
}

/** Says what of the published changes is doubtful, or what an operator approved of them; null: nothing. */
export function publishedDoubts(verdict: GuardVerdict | null, isApproved: boolean): string | null {
  if (verdict === null) return null
  const doubts = [verdict.refusal, verdict.warning].filter((words) => words !== null).join('; ')
  if (doubts === '') return null
  const words = doubts.replaceAll(' would be ', ' were ')
  return isApproved ? `published, as approved: ${words}` : `published, but doubtful: ${words}`
}

/**
 * Adds what is doubtful to the row of the log that a run wrote after the row `last`. What an operator approved is marked as that:
 * all of the verdicts with `isApproved`, and `removed`, the records whose removal was approved.
 */
export function noteDoubts(
  { store, source, runId }: Pick<SyncContext, 'store' | 'source' | 'runId'>,
  last: number,
  verdicts: readonly GuardVerdict[],
  { isApproved, removed = [] }: { readonly isApproved: boolean; readonly removed?: readonly string[] },
): void {
  const doubted: Record<string, string[]> = {}
  const counts: Partial<Record<Doubt, number>> = {}
  for (const verdict of verdicts)
    for (const [kind, ids] of doubtedKinds(verdict.doubted)) {
      doubted[kind] = [...(doubted[kind] ?? []), ...ids]
      counts[kind] = (counts[kind] ?? 0) + (verdict.counts[kind] ?? ids.length)
    }
  const kinds = doubtedKinds(doubted, counts).map(([kind]) => kind)
  const approved = [...(isApproved ? kinds : []), ...(removed.length > 0 ? (['removed'] as const) : [])]
  if (removed.length > 0) {
    doubted['removed'] = [...removed]
    counts.removed = removed.length
  }
  store.changes.noteDoubts(source, last, { run: runId, doubted, counts, ...(approved.length > 0 && { approved }) })
}
