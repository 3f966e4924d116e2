import { changeMessage } from '../../../../store/findings/message.ts'
import { readFindings } from '../../../../store/findings/database.ts'
import type { FindingsReads, LoggedFindings } from '../../../../store/findings/reads.ts'
import { NOT_JUDGED, whyNoTags } from '../../../../store/findings/words.ts'
import { MirrorError } from '../../../../base/errors.ts'
import type { Block } from '../../blocks.ts'
import { changedFindingsTable } from '../../../lookup/change-tables.ts'
import { listBlocks } from '../../links.ts'
import type { PageCall } from '../../page.ts'

/**
 * Reads from the findings of tags; null while there are none, and where the settings make none. Throws `stale` where records or
 * catalog are too old to be served.
 */
export function readTagFindings<T>(
  { config, refuseOld }: Pick<PageCall, 'config' | 'refuseOld'>,
  use: (reads: FindingsReads) => T,
): T | null {
  if (whyNoTags(config) !== null) return null
  for (const source of ['osv', 'catalog'] as const) refuseOld(source)
  return readFindings(config.data.dir, (reads) => (reads.readState() === null ? null : use(reads)))
}

/** Reads as `readTagFindings`; throws `not_found` where the settings make none, and `not_ready` while there are none. */
export function requireTagFindings<T>(call: PageCall, use: (reads: FindingsReads) => T): T {
  const off = whyNoTags(call.config)
  if (off !== null) throw new MirrorError('not_found', off)
  const found = readTagFindings(call, use)
  if (found === null) throw new MirrorError('not_ready', NOT_JUDGED)
  return found
}

/** Said where no change is listed. */
export const NOT_LOGGED = 'no change of a judged tag is in the log, which is kept for data.historyDays'

/** Returns the table of changes of tags, newest first; `empty`: what is said where there are none; `next`: the last one shown, where there are more. */
export function changesBlocks(
  call: PageCall,
  changes: readonly LoggedFindings[],
  empty: string,
  next?: number,
): Block[] {
  const more = next === undefined ? {} : { next: String(next) }
  const table = changedFindingsTable(changes.map(changeMessage), { empty, total: null, ...more })
  return listBlocks(call, 'tag-changes', table, {}, 'before')
}
