import { MirrorError } from '../base/errors.ts'
import { percent } from '../base/text.ts'
import type { Quarantine } from '../store/runs/quarantine.ts'
import { changedScope, describeChanged } from '../store/runs/run-scope.ts'
import type { SyncContext, SyncResult } from './context.ts'

/** Limits of the removal guard: a run that would remove more than both is quarantined (promise 5). */
interface GuardLimits {
  /** Share of the stored entries, 0 to 1. */
  fraction: number
  /** Number of entries. */
  count: number
}

/** Returns the limits of removals that the settings have. */
export function removalLimits({ guard }: Pick<SyncContext['config'], 'guard'>): GuardLimits {
  return { fraction: guard.removedShare, count: guard.removedCount }
}

/**
 * Returns the reason why a change needs operator approval, or null if it does not. Removing all entries always needs
 * approval: no source loses everything at once for a good reason.
 */
export function refuseRemoval(stored: number, removed: number, limits: GuardLimits, noun: string): string | null {
  if (stored > 0 && removed === stored)
    return stored === 1 ? `it would remove the only one of the ${noun}` : `it would remove all ${stored} ${noun}`
  if (removed <= limits.count || removed <= stored * limits.fraction) return null
  const share = ((100 * removed) / stored).toFixed(1)
  return (
    `it would remove ${removed} of ${stored} ${noun} (${share} %), more than ${limits.count} and more than ` +
    percent(limits.fraction)
  )
}

/** Returns the reason of a refusal, and which settings changed that may be the cause of it. */
export function explainRemoval(
  { store, config, source }: Pick<SyncContext, 'store' | 'config' | 'source'>,
  reason: string,
): string {
  const changed = changedScope(store.runs, config, source)
  return changed === null ? reason : `${reason}; ${describeChanged(changed)}, which may be the cause`
}

type RefusalContext = Pick<SyncContext, 'store' | 'runId' | 'dryRun' | 'facts'>

/** A refused change, as a run met it. */
type RefusedChange = Omit<Quarantine, 'runId' | 'decision'>

/**
 * Stores a refused change for `approve`, once, even if upstream repeats it; a dry run stores nothing. Records in the facts which run
 * waits for the decision. Returns what is to be decided, in words; null: a dry run met it first.
 */
export async function keepRefused(
  { store, runId, dryRun, facts }: RefusalContext,
  refused: RefusedChange,
): Promise<string | null> {
  const known = store.quarantine.findQuarantine(refused.path, refused.sha256)
  if (known === null && !dryRun) await store.exclusive(() => store.quarantine.keepQuarantine({ ...refused, runId }))
  const run = known?.runId ?? runId
  facts['quarantine'] = run
  if (known?.decision === 'rejected') return `rejected before (run ${run})`
  return dryRun && known === null ? null : `approve or reject run ${run}`
}

/** Does the same for a run of which nothing else is published, and returns its result. */
export async function quarantineChange(context: RefusalContext, refused: RefusedChange): Promise<SyncResult> {
  const decision = await keepRefused(context, refused)
  const message = decision === null ? `dry run: ${refused.reason}` : `${refused.reason}; ${decision}`
  return { outcome: 'quarantined', asOf: null, message }
}

/**
 * Whether a refused change may be applied as it is stored: no run since then published anything, or found that upstream serves what is
 * stored. Otherwise upstream is asked first, so that an approval never puts older data over newer.
 */
export function isNewest({ store }: Pick<SyncContext, 'store'>, { source, runId }: Quarantine): boolean {
  const published = store.snapshots.readSnapshot(source)
  if (published === null) return true
  const confirmed = store.runs.readLatestWith(source, published.id)?.id ?? 0
  return Math.max(published.runId, confirmed) <= runId
}

/** Returns the error of an approval of what upstream does not serve any more. */
export function isGone({ runId, source }: Quarantine): MirrorError {
  const message = `upstream serves something else now than run ${runId} refused, so nothing was published: run "patchmirror sync ${source}" for what it serves`
  return new MirrorError('usage', message)
}
