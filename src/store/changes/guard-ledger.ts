import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** What a run published, by which something may be hidden. */
export interface LedgerRow {
  /** Of the kind of doubt. */
  readonly kind: string
  /** Of the record or item. */
  readonly name: string
  readonly weight: number
  readonly packages: readonly string[]
}

type Row = Omit<LedgerRow, 'packages'> & { readonly packages: string }

/** Creates the ledger of what runs published below the limits of the guard; call writes inside the transaction that publishes. */
export function createGuardLedger(db: Db) {
  const { list, run } = queries(db)
  const kept = db.prepare<[string, string, number], Row>(
    'SELECT kind, name, weight, packages FROM guard_doubt WHERE source = ? AND kind = ? AND at >= ?',
  )
  const put = db.prepare(
    `INSERT INTO guard_doubt (source, kind, name, at, weight, packages)
     VALUES (@source, @kind, @name, @at, @weight, @packages) ON CONFLICT DO NOTHING`,
  )
  const dropKind = db.prepare('DELETE FROM guard_doubt WHERE source = ? AND kind = ?')
  const settle = db.prepare(
    `INSERT INTO guard_settled (source, kind, at) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET at = excluded.at`,
  )
  return {
    /** What was published of a kind since a time, Unix milliseconds. */
    listLedger: (source: SourceName, kind: string, since: number): LedgerRow[] =>
      kept.all(source, kind, since).map((row) => {
        return { ...row, packages: JSON.parse(row.packages) as string[] }
      }),
    /** Adds what a run publishes; what is there keeps its time. */
    addToLedger(source: SourceName, at: number, rows: Iterable<LedgerRow>): void {
      for (const { packages, ...row } of rows) put.run({ source, at, ...row, packages: JSON.stringify(packages) })
    },
    /** Forgets a record or item that is as it was before the ledger had it: all rows later than a time. */
    dropFromLedger: run<[source: SourceName, name: string, since: number]>(
      'DELETE FROM guard_doubt WHERE source = ? AND name = ? AND at > ?',
    ),
    /** Forgets what was published of kinds, and notes when they were above their limits. */
    settleLedger(source: SourceName, kinds: readonly string[], at: number): void {
      for (const kind of kinds) {
        dropKind.run(source, kind)
        settle.run(source, kind, at)
      }
    },
    /** The kinds that were published above their limits since a time, Unix milliseconds. */
    listSettled: list<[source: SourceName, since: number], string>(
      'SELECT kind FROM guard_settled WHERE source = ? AND at >= ?',
    ),
    /** Forgets what is older than a time. */
    forgetLedger: run<[source: SourceName, before: number]>('DELETE FROM guard_doubt WHERE source = ? AND at < ?'),
  }
}
