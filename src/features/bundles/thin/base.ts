import { gunzipSync } from 'node:zlib'
import type { Reads } from '../../../store/reads.ts'
import type { ExportedState } from '../../../store/replication/ledger.ts'
import { type BaseContents, MOST_BYTES } from './format.ts'

/** Reads the contents of an exported state: its documents, kept with it, and the versions of records that were replaced since. */
export function contentsOfExport(
  { ledger, changes, osv }: Pick<Reads, 'ledger' | 'changes' | 'osv'>,
  { sequence, sources }: ExportedState,
): BaseContents {
  const snapshot = sources.osv?.snapshot ?? ''
  const position = changes.findInLog(snapshot).find(({ source }) => source === 'osv')?.after ?? null
  return {
    document: (path) => inflated(ledger.readExportedDocument(sequence, path)),
    record(id) {
      const next = position === null ? null : changes.readNextChange('osv', id, position)
      const earlier = next === null ? null : osv.readEarlier(id, next)
      return earlier === null ? null : inflated(earlier.body ?? osv.readRecord(id)?.body ?? null)
    },
  }
}

/** Reads the contents that are stored now. */
export function contentsStored({ feeds, osv }: Pick<Reads, 'feeds' | 'osv'>): BaseContents {
  return {
    document: (path) => inflated(feeds.readDocument(path)?.body ?? null),
    record: (id) => inflated(osv.readRecord(id)?.body ?? null),
  }
}

/** What does not inflate, or to too much, is no dictionary. */
function inflated(gzip: Buffer | null): Buffer | null {
  try {
    return gzip && gunzipSync(gzip, { maxOutputLength: MOST_BYTES })
  } catch {
    return null
  }
}
