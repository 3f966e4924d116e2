import type { Config } from '../../config/schema.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
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
  if (reason === null) return null
  const { index, gzip: body, etag, lastModified, asOf } = listed
  const validators = { etag, lastModified, asOf }
  const refused = { source: 'osv', path: OSV_INDEX, sha256: index.sha256, body } as const
  return quarantineChange(context, { ...refused, ...validators, reason })
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
