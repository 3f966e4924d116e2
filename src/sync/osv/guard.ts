import type { Config } from '../../config/schema.ts'
import { sha256Of } from '../../base/digest.ts'
import { counted } from '../../base/text.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { RecordToStore } from '../../store/osv/reads.ts'
import type { SyncContext } from '../context.ts'
import { accountDoubts, createStandard, noteDoubts, publishedDoubts, recordDoubts } from '../doubts.ts'
import { refuseRemoval, removalLimits } from '../refusals.ts'
import type { Approval } from './approval.ts'
import type { OsvPlan } from './diff.ts'
import { emptiedEcosystem } from './emptied.ts'
import type { OsvIndex } from './index-parser.ts'
import type { LeftRecord } from './scope.ts'

/** What a run refuses: the digest of what it found, by which it can be approved, and why. */
export interface Refusal {
  readonly state: 'refused'
  readonly sha256: Buffer
  readonly reason: string
}

/** Refuses an index that would remove too many records, or all of an ecosystem, unless that is approved; null: the run may continue. */
export function refuseIndex(
  { config, store }: Pick<SyncContext, 'config' | 'store'>,
  { sha256, ids, unnamed, scope, lacks }: OsvIndex,
  plan: OsvPlan,
  approval: Approval,
): Refusal | null {
  const reason =
    removalReason(config, plan, (scope?.listed ?? ids).size, { unnamed, lacks }) ??
    (config.guard.removedShare < 1 ? emptiedEcosystem(store.osv, plan, config.views.vendors) : null)
  return reason === null || approval.allowsRemovals(sha256) ? null : { state: 'refused', sha256, reason }
}

/** Judges the records that a run is about to store. */
export type OsvRecordGuard = Awaited<ReturnType<typeof openRecordGuard>>

/**
 * Opens the guard of a run's records. They are compared unless nothing is stored that they could be compared with, or it is off; what
 * the scope removes is judged in any case. Loads the code that compares only then: it has the orders of all ecosystems.
 */
export async function openRecordGuard(context: SyncContext, plan: OsvPlan, approval: Approval) {
  const { config, suspectIds } = context
  const isOff = plan.stored === 0 || config.guard.mode === 'off'
  const left: LeftRecord[] = []
  const allowed: string[] = []
  const withLeft = (compared: GuardVerdict | null) => judgeLeft(config, plan, left, compared)
  const compared = isOff ? null : await openComparison(context, plan.stored)
  return {
    /** Judges a record before it replaces the stored one. */
    see(record: RecordToStore): void {
      // Where its stored bytes are damaged, this repairs them.
      if (!suspectIds.has(record.id)) compared?.see(record)
    },
    /** Notes stored records that are removed because their new content is out of scope. */
    leave(records: readonly LeftRecord[]): void {
      left.push(...records)
      for (const [id, modified] of records) compared?.guard.leave(id, modified, OUT_OF_SCOPE)
    },
    /** Notes the records that the index does not list any more; `isAllowed`: their removal was approved. */
    remove(ids: readonly string[], isAllowed: boolean): void {
      if (isAllowed) allowed.push(...ids)
      else for (const id of ids) compared?.guard.remove(id)
    },
    /** Judges what was noted, and records in the facts of the run what is doubtful; null: nothing was judged. */
    verdict(): GuardVerdict | null {
      const verdict = withLeft(compared?.guard.verdict() ?? null)
      if (verdict !== null) recordDoubts(context, verdict)
      return verdict
    },
    /**
     * Accounts for what a verdict says, in the transaction that publishes it, after the row `last` of the log. Returns what is
     * said of it; null: nothing.
     */
    account(verdict: GuardVerdict | null, last: number): string | null {
      const isApproved = verdict !== null && approval.covers(verdict)
      noteDoubts(context, last, verdict === null ? [] : [verdict], { isApproved, removed: allowed })
      if (verdict === null) return null
      if (compared !== null) accountDoubts(context, verdict, compared.standard, compared.restored())
      return publishedDoubts(verdict, isApproved)
    },
  }
}

/** Opens the comparison of a run's records with the stored ones, and with those of the time when the window began. */
async function openComparison(context: SyncContext, stored: number) {
  const { store, now } = context
  const { createRecordGuard } = await import('../../guard/guard.ts')
  const { ruledOutIds } = await import('../../guard/ids.ts')
  const standard = createStandard(context, () => stored)
  const ruledOut = (ids: ReadonlySet<string>) => ruledOutIds(store.vex, ids)
  const guard = createRecordGuard({ ...standard, ruledOut }, stored, now())
  const back: string[] = []
  /** Returns a record as it was when the window began; null: it is the same now, or is not kept. */
  const versionAtStart = (id: string) => {
    const earlier = standard.settings.windowDays === 0 ? null : store.osv.readSince(id, standard.since)
    const body = earlier?.body ?? null
    return earlier === null || body === null ? null : { ...earlier, body }
  }
  return {
    guard,
    standard,
    restored: () => [...guard.restored(), ...back],
    see(record: RecordToStore): void {
      const { id } = record
      const own = store.osv.readRecord(id)
      // A record that was removed and comes back is compared with what it was.
      const removed = own === null ? store.osv.readRemoved(id) : null
      if (removed !== null) back.push(id)
      const before = own ?? removed
      const atStart = before === null ? null : versionAtStart(id)
      guard.see(record, { before, atStart }, () => store.osv.readEntry(id)?.modified ?? null)
    },
  }
}

/**
 * Adds to a verdict what the scope would remove because contents changed, beside what the index removes: the limits are
 * those of removals. The identity is of the ids and stamps, since what is out of scope is removed whatever it says.
 */
function judgeLeft(
  config: Pick<Config, 'guard'>,
  { stored, removed }: Pick<OsvPlan, 'stored' | 'removed'>,
  left: readonly LeftRecord[],
  verdict: GuardVerdict | null,
): GuardVerdict | null {
  if (left.length === 0) return verdict
  const refuse = (of: number, lost: number) => refuseRemoval(of, lost, removalLimits(config), 'records')
  // Removals over the limits were approved: then what leaves the scope is judged against the rest.
  const beside = refuse(stored, removed.length) === null ? removed.length : 0
  const rest = beside === removed.length ? stored : stored - removed.length
  const reason = refuse(rest, left.length + beside)
  if (reason === null) return verdict
  const ids = left.map((one) => one.join(' ')).sort()
  const others = beside === 0 ? '' : `, and the index removes ${beside}`
  const refusal = `${counted(left.length, 'record')} left the scope (osv.scope)${others}: ${reason}`
  const contents = verdict ?? NOTHING_COMPARED
  return {
    ...contents,
    refusal: contents.refusal === null ? refusal : `${refusal}; ${contents.refusal}`,
    identity: sha256Of([contents.identity.toString('base64'), ...ids].join('\n')),
    doubts: left.length + contents.doubts,
    lines: [...left.slice(0, LISTED).map(([id]) => `${id}: ${OUT_OF_SCOPE}`), ...contents.lines],
  }
}

const NOTHING_COMPARED: GuardVerdict = {
  refusal: null,
  warning: null,
  identity: Buffer.of(),
  doubts: 0,
  lines: [],
  doubted: {},
  counts: {},
  below: 0,
  belowLines: [],
  belowRows: [],
  notCompared: 0,
}

const LISTED = 20
const OUT_OF_SCOPE = 'out of the mirrored scope now'

function removalReason(
  config: Pick<Config, 'guard'>,
  { stored, removed, dropped, added }: OsvPlan,
  listed: number,
  { unnamed, lacks }: Pick<OsvIndex, 'unnamed' | 'lacks'>,
): string | null {
  if (listed === 0) return 'the index lists no record at all'
  if (stored > 0 && dropped.length === stored && added.length === 0)
    return `the scope (osv.scope) would remove all ${stored} records, and nothing else that upstream lists is in it`
  if (unnamed > 0 && removed.length > 0) {
    return `${counted(unnamed, 'entry has', 'entries have')} no id, so the ${counted(removed.length, 'record that seems', 'records that seem')} removed may be among them`
  }
  // What a mirror does not list may be among what it lacks.
  if (lacks !== null && removed.length > 0)
    return `it would remove ${counted(removed.length, 'record')} that may still be listed: ${lacks.why}`
  return refuseRemoval(stored, removed.length, removalLimits(config), 'records')
}
