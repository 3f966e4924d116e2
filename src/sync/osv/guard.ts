import type { Config } from '../../config/schema.ts'
import { sha256Of } from '../../base/digest.ts'
import { counted } from '../../base/text.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import type { RecordGuard } from '../../guard/guard.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { RecordToStore } from '../../store/osv/reads.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { type SourceStandard, accountDoubts, createStandard } from '../doubts.ts'
import { quarantineChange, refuseRemoval } from '../removal-guard.ts'
import { isOfIndex, isRemovalApproved, keepRemovalApproval } from './approval.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { OsvIndex } from './index-parser.ts'
import type { LeftRecord } from './scope/scope.ts'

/** Quarantines an index that would remove too many records. Returns null when the run may continue. */
export function guardOsv(context: SyncContext, listed: ListedIndex, plan: OsvPlan): Promise<SyncResult> | null {
  const reason = removalReason(context.config, listed.index, plan)
  const { sha256 } = listed.index
  if (reason === null || isRemovalApproved(context, sha256)) return null
  return refuse(context, listed, sha256, reason)
}

function refuse(
  context: SyncContext,
  { gzip: body, etag, lastModified, asOf }: ListedIndex,
  sha256: Buffer,
  reason: string,
): Promise<SyncResult> {
  const validators = { etag, lastModified, asOf }
  return quarantineChange(context, { source: 'osv', path: OSV_INDEX, sha256, body, ...validators, reason })
}

/** Judges the records that a run is about to store; `see` is called with each before it replaces the stored one. */
export interface OsvRecordGuard {
  see(record: RecordToStore): void
  /** Notes a stored record that is removed because its new content is out of scope. */
  leave(left: LeftRecord): void
  /** Notes the records that the index does not list any more. */
  remove(ids: readonly string[]): void
  verdict(): GuardVerdict
  /** Accounts for what a verdict says, in the transaction that publishes it. */
  account(verdict: GuardVerdict): void
}

/**
 * Creates the guard of a run's records; null when nothing is stored that they could be compared with, or it is off. Loads the code only then: it has the orders of all ecosystems.
 */
export async function openRecordGuard(context: SyncContext, stored: number): Promise<OsvRecordGuard | null> {
  const { config, store, suspectIds, now } = context
  if (stored === 0 || config.guard.mode === 'off') return null
  const { createRecordGuard } = await import('../../guard/guard.ts')
  const { ruledOutIds } = await import('../../guard/ids.ts')
  const standard = createStandard(context, () => stored, {
    count: config.osv.guardRecords,
    share: config.osv.guardFraction,
  })
  const ruledOut = (ids: ReadonlySet<string>) => ruledOutIds(store.vex, ids)
  const guard: RecordGuard = createRecordGuard({ ...standard, ruledOut }, stored, now())
  const back: string[] = []
  return {
    verdict: () => guard.verdict(),
    leave: ([id, modified]) => guard.leave(id, modified, OUT_OF_SCOPE),
    remove: (ids) => {
      for (const id of ids) guard.remove(id)
    },
    account: (verdict) => {
      accountDoubts(context, verdict, standard, [...guard.restored(), ...back])
    },
    see(record) {
      const { id } = record
      if (suspectIds.has(id)) return // its stored bytes are damaged: this repairs them
      const own = store.osv.readRecord(id)
      // A record that was removed and comes back is compared with what it was.
      const removed = own === null ? store.osv.readRemoved(id) : null
      if (removed !== null) back.push(id)
      const before = own ?? removed
      const atStart = before === null ? null : versionAtStart(context, standard, id)
      guard.see(record, { before, atStart }, () => store.osv.readEntry(id)?.modified ?? null)
    },
  }
}

/** Returns a record as it was when the window began; null: it is the same now, or is not kept. */
function versionAtStart({ store }: SyncContext, { since, settings }: SourceStandard, id: string) {
  if (settings.windowDays === 0) return null
  const earlier = store.osv.readSince(id, since)
  const body = earlier?.body ?? null
  return earlier === null || body === null ? null : { ...earlier, body }
}

/** Quarantines the records of a run whose changes should not be believed. The doubts are among the run's facts. */
export async function refuseRecords(
  context: SyncContext,
  listed: ListedIndex,
  { identity, refusal }: GuardVerdict,
  approved: Quarantine | null,
): Promise<SyncResult> {
  if (approved === null) return refuse(context, listed, identity, refusal ?? '')
  const ofIndex = isOfIndex(approved)
  if (ofIndex) await keepRemovalApproval(context, approved)
  const other = ofIndex
    ? `what run ${approved.runId} would remove is approved now, these records need an approval of their own`
    : `what run ${approved.runId} refused was something else`
  return refuse(context, listed, identity, `${refusal ?? ''}; ${other}`)
}

/**
 * Adds to a verdict what the scope would remove because contents changed, beside what the index removes: the limits are
 * those of removals. The identity is of the ids and stamps, since what is out of scope is removed whatever it says.
 */
export function judgeLeft(
  { config: { osv } }: Pick<SyncContext, 'config'>,
  { stored, removed }: Pick<OsvPlan, 'stored' | 'removed'>,
  left: readonly LeftRecord[],
  verdict: GuardVerdict | null,
): GuardVerdict | null {
  if (left.length === 0) return verdict
  const refuse = (of: number, lost: number) => refuseRemoval(of, lost, limitsOf(osv), 'records')
  // Removals over the limits were approved: then what leaves the scope is judged against the rest.
  const beside = refuse(stored, removed.length) === null ? removed.length : 0
  const rest = beside === removed.length ? stored : stored - removed.length
  const reason = refuse(rest, left.length + beside)
  if (reason === null) return verdict
  const ids = left.map((one) => one.join(' ')).sort()
  const others = beside === 0 ? '' : `, and the index removes ${beside}`
  const refusal = `${counted(left.length, 'record')} left the scope (osv.include, osv.exclude)${others}: ${reason}`
  return {
    refusal: [refusal, ...(verdict?.refusal ? [verdict.refusal] : [])].join('; '),
    warning: verdict?.warning ?? null,
    identity: sha256Of([verdict?.identity.toString('base64') ?? '', ...ids].join('\n')),
    doubts: left.length + (verdict?.doubts ?? 0),
    lines: [...left.slice(0, LISTED).map(([id]) => `${id}: ${OUT_OF_SCOPE}`), ...(verdict?.lines ?? [])],
    doubted: verdict?.doubted ?? {},
    counts: verdict?.counts ?? {},
    below: verdict?.below ?? 0,
    belowLines: verdict?.belowLines ?? [],
    belowRows: verdict?.belowRows ?? [],
    notCompared: verdict?.notCompared ?? 0,
  }
}

const LISTED = 20
const OUT_OF_SCOPE = 'out of the mirrored scope now'

function removalReason(
  { osv }: Pick<Config, 'osv'>,
  { ids, unnamed, scope }: OsvIndex,
  { stored, removed, dropped, added }: OsvPlan,
): string | null {
  if ((scope?.listed ?? ids).size === 0) return 'the index lists no record at all'
  if (stored > 0 && dropped.length === stored && added.length === 0)
    return `the scope (osv.include, osv.exclude) would remove all ${stored} records, and nothing else that upstream lists is in it`
  if (unnamed > 0 && removed.length > 0) {
    return `${counted(unnamed, 'entry has', 'entries have')} no id, so the ${counted(removed.length, 'record that seems', 'records that seem')} removed may be among them`
  }
  return refuseRemoval(stored, removed.length, limitsOf(osv), 'records')
}

/** Returns the limits of removals that the settings have. */
function limitsOf({ guardFraction, guardRecords }: Config['osv']) {
  return { fraction: guardFraction, count: guardRecords }
}
