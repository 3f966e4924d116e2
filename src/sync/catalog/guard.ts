import { createHash } from 'node:crypto'
import { sha256Of } from '../../base/digest.ts'
import { packContent } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { CatalogContext } from './context.ts'
import { isNarrow } from './scope/refresh-scope.ts'
import type { SyncResult } from '../context.ts'
import type { RemovedItems } from './removed-items.ts'
import { NAMED } from './removals.ts'
import { explainRemoval, quarantineChange } from '../refusals.ts'

/**
 * Quarantines a run that would remove too many items of a list, or too many items with stored answers (as when the
 * scope shrinks), or to hide what should not be hidden (`verdict`). Stores the list of removals for `approve`. Returns null when the run may continue.
 */
export async function guardCatalog(
  context: CatalogContext,
  removed: readonly RemovedItems[],
  approved: Quarantine | null,
  verdict: GuardVerdict | null,
): Promise<SyncResult | null> {
  const reasons: string[] = []
  const refused: Record<string, unknown> = {}
  const names: string[] = []
  for (const { key, resource, gone, reason } of removed) {
    if (reason === null) continue
    reasons.push(reason)
    refused[key] = resource === null ? gone : { count: gone.length, sha256: digestOfIds(gone) }
    for (const id of gone) names.push(resource === null ? id : `${resource}/${id}`)
  }
  const refusal = verdict?.refusal ?? null
  if (verdict !== null && refusal !== null) {
    reasons.push(refusal)
    refused['doubts'] = verdict.identity.toString('hex')
  }
  if (reasons.length === 0) return null
  const body = Buffer.from(JSON.stringify(refused))
  const sha256 = sha256Of(body)
  if (approved?.sha256.equals(sha256) === true) return null
  if (names.length > 0) noteRefused(context, names)
  const why = reasons.join('; ')
  // The items of a list are upstream's alone; what is mirrored of them, and which lists, the settings decide too.
  const isOfScope = 'owners' in refused || 'lists' in refused
  return refuse(context, isOfScope ? explainRemoval(context, why) : why, body, sha256)
}

/** Records what would be removed: how much, and the first of it. A run that is refused shows it as planned. */
function noteRefused({ facts }: CatalogContext, names: readonly string[]): void {
  const all = [...new Set(names)]
  facts['removed'] = all.length
  facts['removedIds'] = all.slice(0, NAMED)
}

/** Returns the path under which a source's quarantined runs are stored. */
export function quarantinePath(source: CatalogContext['source']): string {
  return `/${source}`
}

/** Returns the digest that identifies a set of removals, so that an approval is valid for exactly that set. */
function digestOfIds(ids: Iterable<string>): string {
  const hash = createHash('sha256')
  for (const id of ids) hash.update(id).update('\0')
  return hash.digest('hex')
}

/** Returns the result of a run that must wait for the decision on an earlier quarantined run. */
function awaitDecision({ facts }: CatalogContext, run: number, reason: string): SyncResult {
  facts['quarantine'] = run
  return {
    outcome: 'quarantined',
    asOf: null,
    message: `${reason}; approve or reject run ${run} first`,
  }
}

async function refuse(context: CatalogContext, reason: string, body: Buffer, sha256: Buffer): Promise<SyncResult> {
  const { store, source, dryRun, now } = context
  const path = quarantinePath(source)
  const known = store.quarantine.findQuarantine(path, sha256)
  // A refresh compares only a part; it must not replace what a sync, comparing everything, has quarantined.
  const open = store.quarantine.listOpenQuarantines().find((one) => one.path === path)
  if (known === null && open !== undefined && isNarrow(context)) return awaitDecision(context, open.runId, reason)
  const packed = packContent(body)
  const change = { source, path, reason, sha256, body: packed, asOf: now() }
  const result = await quarantineChange(context, { ...change, etag: null, lastModified: null })
  return dryRun ? { ...result, message: `dry run: ${reason}` } : result
}
