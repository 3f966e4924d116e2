import type { ImportedBundle } from '../../store/replication/ledger.ts'

/** A bundle in the report; times in ISO 8601 UTC. */
export interface BundleStatus {
  /** Identity of the mirror that made it, and its number there. */
  mirror: string
  sequence: number
  kind: 'full' | 'delta'
  /** The trusted key that signed it; null: unsigned, and that was allowed. */
  key: string | null
  /** Upstream's date of the oldest that it brought. */
  asOf: string
  createdAt: string
  importedAt: string
  /** It was older than the stored state. */
  rollback: boolean
}

/** What crosses the gap by itself in the report; times in ISO 8601 UTC. Null for a box that the settings do not name. */
export interface BoxesStatus {
  readonly outbox: {
    /** What was put into it last since the start. */
    readonly last: {
      readonly sequence: number
      readonly kind: 'full' | 'delta'
      readonly file: string
      readonly bytes: number
      readonly at: string
    } | null
    readonly exporting: boolean
    /** The code of what went wrong the last time; null: nothing did. */
    readonly problem: string | null
    /** The same in words, without the names of folders. */
    readonly reason: string | null
  } | null
  readonly inbox: {
    readonly waiting: readonly { readonly file: string; readonly why: string }[]
    /** Since the start, as the other counts. */
    readonly imported: number
    readonly superseded: number
    readonly refused: number
    readonly lastRefused: {
      readonly file: string
      readonly at: string
      readonly why: string
    } | null
    /** The system's word for why it cannot be looked into. */
    readonly problem: string | null
  } | null
}

/** Returns the report on the last imported bundle, without the name of its file, which is private. */
export function bundleStatus(last: ImportedBundle | null): BundleStatus | null {
  if (last === null) return null
  const { mirror, sequence, kind, keyId: key, rollback } = last
  return {
    ...{ mirror, sequence, kind, key, rollback },
    asOf: new Date(last.asOf).toISOString(),
    createdAt: new Date(last.createdAt).toISOString(),
    importedAt: new Date(last.importedAt).toISOString(),
  }
}
