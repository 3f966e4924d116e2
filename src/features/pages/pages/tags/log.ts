import { readFindings } from '../../../../store/findings/database.ts'
import type { FindingsReads, LoggedFindings } from '../../../../store/findings/reads.ts'
import { NOT_JUDGED, detailWords, findingWords, whyNoTags } from '../../../../store/findings/words.ts'
import { clip } from '../../../../base/text.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { toIso } from '../../../../base/time.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, grouped, link, plain, time } from '../../../../answers/cells.ts'
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

/** Returns the table of changes of tags, newest first. */
export function changesTable(
  { ui, now }: PageCall,
  changes: readonly LoggedFindings[],
): Block & { readonly kind: 'table' } {
  const rows = changes.map((one): (Cell | Cell[])[] => [
    time(toIso(one.at), now),
    link(clip(one.name, 200), ui('tag', { id: one.owner })),
    plain(findingWords(one)),
    plain(one.details.map(detailWords).join('; '), 600),
    plain(`${grouped(one.findings)}, ${grouped(one.fixable)} with a fix`),
  ])
  return {
    kind: 'table',
    title: 'Changes of findings',
    note: 'By other records, SBOMs, VEX or patches. What VEX rules out does not count.',
    columns: ['When', 'Tag', 'Change', 'The first of them', 'Findings then'],
    rows,
    empty: 'No finding changed.',
  }
}
