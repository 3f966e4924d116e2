import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { type KeptLines, type ReadLines, createLines, isAfter } from './kept-lines.ts'
import { createRecordPages } from './osv-pages.ts'
import type { CarriedReader } from './reader.ts'
import { ROW_KINDS, createStateDigest, hashJson, stateLine } from './rows.ts'

interface Known {
  readonly version: number
  readonly changes: number
  readonly digest: string
}

/**
 * Creates the state digests of an import, which needs each several times. While nothing is written none is computed again. After
 * writes of this connection, the records that were not written are taken as they were read; all other rows are read again. A
 * commit of another connection has everything read again. A caller forgets them at its end.
 */
export function createKnownStates(db: Db, { eachRow }: Pick<CarriedReader, 'eachRow'>) {
  const total = db.prepare<[], number>('SELECT total_changes()').pluck()
  const known = new Map<SourceName, Known>()
  const lines = createLines(db, createStateLines(db))
  /** What was read of all records, and every id that this connection wrote since. */
  let kept: KeptLines | null = null
  const written = new Set<string>()

  const digestOf = (source: SourceName): string => {
    const digest = createStateDigest()
    const addLines = (some: Uint8Array): void => digest.addLines(some)
    for (const kind of ROW_KINDS[source])
      if (kind !== 'osv-record') for (const row of eachRow(source, kind)) digest.add(row)
      else if (kept !== null && lines.isCurrent(kept)) lines.readAgain(kept, written, addLines)
      else {
        kept = lines.read(addLines, true).kept
        written.clear()
      }
    return digest.end()
  }
  return {
    /** Returns the state digest of a source, hex. */
    digestOf(source: SourceName): string {
      const version = Number(db.pragma('data_version', { simple: true }))
      const changes = total.get() ?? 0
      const before = known.get(source)
      if (before?.version === version && before.changes === changes) return before.digest
      const digest = digestOf(source)
      known.set(source, { version, changes, digest })
      return digest
    },
    /** Takes every id of a record that this connection wrote since the last call; null: they are too many. */
    wrote(ids: readonly string[] | null): void {
      if (ids === null) kept = null
      else for (const id of ids) written.add(id)
    },
    forget(): void {
      known.clear()
      kept = null
    },
  }
}

/** Creates the reading of the lines that a state digest has for records. */
function createStateLines(db: Db): ReadLines {
  const list = createRecordPages(db)
  return (after, end, limit) => {
    const rows = list(after, limit).filter(([key]) => !isAfter(key, end))
    const last = rows.at(-1)
    if (last === undefined) return null
    const text = rows.map(([key, json]) => stateLine({ kind: 'osv-record', key, hash: hashJson('osv-record', json) }))
    return { lines: Buffer.from(text.join('')), last: last[0], records: rows.length }
  }
}
