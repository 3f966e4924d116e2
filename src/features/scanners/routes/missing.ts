import { type MissingRecord, findMissingRecord } from '../../../server/lookup/missing-record.ts'
import { whyOutOfScope } from '../../../server/feeds/osv.ts'
import type { Reads } from '../../../store/reads.ts'

/** Returns why a record is not here that upstream lists, or may list: it could not be stored, or is out of scope; null: neither. */
export function whyNoRecord(reads: Reads, id: string): MissingRecord | null {
  const missing = findMissingRecord(reads, id)
  if (missing !== null) return missing
  const outside = whyOutOfScope(reads, id)
  return outside === null ? null : { kind: 'unknown', message: outside }
}
