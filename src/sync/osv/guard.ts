import type { Config } from '../../config/schema.ts'
import { sha256Of } from '../../core/digest.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import type { RecordGuard, RecordVerdict } from '../../guard/guard.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { RecordToStore } from '../../store/osv/reads.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { quarantineChange, refuseRemoval } from '../removal-guard.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { OsvIndex } from './index-parser.ts'

/** Quarantines an index that would remove too many records. Returns null when the run may continue. */
export function guardOsv(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> | null {
  const reason = removalReason(context.config, listed.index, plan)
  return reason === null ? null : refuse(context, listed, listed.index.sha256, reason)
}

function refuse(
  context: SyncContext,
  { gzip: body, etag, lastModified, asOf }: ListedIndex,
  sha256: Buffer,
  reason: string,
): Promise<SyncResult> {
  const validators = { etag, lastModified, asOf }
  return quarantineChange(context, { source: 'osv', path: OSV_INDEX, sha256, body, ...validators, reason }) // prettier-ignore
}

/** Judges the records that a run is about to store; `see` is called with each before it replaces the stored one. */
export interface OsvRecordGuard {
  see(record: RecordToStore): void
  verdict(): RecordVerdict
}

/**
 * Creates the guard of a run's records; null when nothing is stored that they could be compared with, or every kind of
 * doubt is off. Loads the code only then: it has the orders of all ecosystems.
 */
export async function openRecordGuard(
  { config, store, suspectIds, now }: SyncContext,
  stored: number,
): Promise<OsvRecordGuard | null> {
  if (stored === 0) return null
  const { createRecordGuard, isGuarding } = await import('../../guard/guard.ts')
  if (!isGuarding(config.guard)) return null
  const guard: RecordGuard = createRecordGuard(config.guard, stored, now())
  return {
    verdict: () => guard.verdict(),
    see(record) {
      if (suspectIds.has(record.id)) return // its stored bytes are damaged: this repairs them
      guard.see(
        record,
        store.osv.readRecord(record.id),
        () => store.osv.readEntry(record.id)?.modified ?? null,
      )
    },
  }
}

/** Records what is doubtful in the facts of the run. */
export function recordDoubts(
  { facts }: SyncContext,
  { doubts, lines, notCompared }: RecordVerdict,
): void {
  if (notCompared > 0) facts['notCompared'] = notCompared
  if (doubts === 0) return
  facts['doubts'] = doubts
  facts['doubtfulIds'] = lines
}

/** Quarantines the records of a run whose changes should not be believed. The doubts are among the run's facts. */
export function refuseRecords(
  context: SyncContext,
  listed: ListedIndex,
  { identity, refusal }: RecordVerdict,
  approved: Quarantine | null,
): Promise<SyncResult> {
  const other = approved === null ? '' : `; what run ${approved.runId} refused was something else`
  return refuse(context, listed, identity, `${refusal ?? ''}${other}`)
}

/** Reports whether an operator approved exactly these records. */
export function isApproved({ identity }: RecordVerdict, approved: Quarantine | null): boolean {
  return approved?.sha256.equals(identity) === true
}

/**
 * Returns the context of a run that applies what another one refused. Where that one compared contents, so must this one:
 * the index does not say which of them changed.
 */
export function contextOfApproval(context: SyncContext, { runId }: Quarantine): SyncContext {
  const compared = context.store.runs.readRun(runId)?.facts['silentChanges'] !== undefined
  return compared ? { ...context, kind: 'reconcile' } : context
}

/**
 * Reports whether an open quarantine is about contents that the published index does not reveal. Only a comparison of
 * contents can then say that upstream serves the stored ones again.
 */
export function isSilentlyRefused({ store }: SyncContext): boolean {
  const open = store.quarantine.listOpenQuarantines().find(({ path }) => path === OSV_INDEX)
  const body = open === undefined ? null : store.quarantine.readQuarantine(open.runId)?.body
  if (body === null || body === undefined) return false
  const served = store.feeds.readDocument(OSV_INDEX)?.sha256
  return served?.equals(sha256Of(contentOf(body, sizeOf(body)))) === true
}

function removalReason(
  { osv }: Pick<Config, 'osv'>,
  { ids, unnamed, scope }: OsvIndex,
  { stored, removed }: OsvPlan,
): string | null {
  if ((scope?.listed ?? ids).size === 0) return 'the index lists no record at all'
  if (unnamed > 0 && removed.length > 0) {
    return `${unnamed} entries have no id, so the ${removed.length} records that seem removed may be among them`
  }
  const limits = { fraction: osv.guardFraction, count: osv.guardRecords }
  return refuseRemoval(stored, removed.length, limits, 'records')
}
