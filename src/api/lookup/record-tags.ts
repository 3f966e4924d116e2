import { MirrorError } from '../../core/errors.ts'
import { readFindings } from '../../store/findings/database.ts'
import type { RecordTags } from '../../store/findings/record-tags.ts'
import { type JudgingSettings, NOT_JUDGED, whyNoTags } from '../../store/findings/words.ts'

/** The settings that decide whether tags are judged, and where. */
export interface RecordTagsSettings extends JudgingSettings {
  readonly data: { readonly dir: string }
}

/**
 * Reads the mirrored tags with a record among their findings; a text says why they are not known. `refuseOld` throws `stale`
 * where records or catalog are too old to be served. Throws `storage`.
 */
export function readRecordTags(
  config: RecordTagsSettings,
  record: string,
  refuseOld: () => void,
): RecordTags | string {
  const off = whyNoTags(config)
  if (off !== null) return off
  try {
    refuseOld()
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'stale') return error.message
    throw error
  }
  const found = readFindings(config.data.dir, (reads) =>
    reads.readState() === null ? null : reads.listTagsWith(record),
  )
  return found ?? NOT_JUDGED
}

/** Returns the tags of a record as answers show them; `notShown`: why they are not known, or not shown. */
export function recordTagsMessage(found: RecordTags | string) {
  return typeof found === 'string'
    ? { tags: { listed: null, count: null, notShown: found } }
    : { tags: { listed: found.tags, count: found.tagCount, notShown: null } }
}
