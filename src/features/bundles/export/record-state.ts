import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MS } from '../../../base/time.ts'
import { systemCode } from '../../../base/errors.ts'
import { SOURCES, type SourceName } from '../../../base/domain/sources.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import type { LedgerReader } from '../../../store/replication/ledger.ts'
import { ROW_KINDS, combineDigests } from '../../../store/replication/rows.ts'
import { type SummaryHeader, type SummarySource, createStatePass } from './summary.ts'
import type { Document } from '../../../store/feeds/documents.ts'
import { type Writes, openWrites } from '../../../store/writes.ts'
import { type ExportSnapshot, pinExportSnapshot } from './snapshot.ts'

/**
 * Records the published state as if it had been exported, without a bundle: later deltas can build on it. Returns its
 * sequence. Throws `not_ready`, `locked`, `storage`.
 */
export async function rememberState(options: RecordOptions): Promise<number> {
  const lock = acquireLock(options.dataDir, 'export')
  try {
    const snapshot = await pinExportSnapshot(options.dataDir, false)
    try {
      const pass = createStatePass(snapshot.carried)
      const sources = snapshot.carried.listStoredSources()
      for (const source of sources) for (const kind of ROW_KINDS[source]) for (const _ of pass.eachRow(source, kind)); // each is noted as it is read
      const header = describeState(snapshot, options, pass.digests)
      return await recordState(snapshot, options, { header, summary: await pass.summary(header) })
    } finally {
      snapshot.close()
    }
  } finally {
    lock.release()
  }
}

type Digests = Partial<Readonly<Record<SourceName, string>>>

/** Describes what a mirror has of some sources, by their digests, as the header of a need file; `brief`: without rows. */
export function describeHeld(reads: DescribedReads, digests: Digests, brief: boolean): SummaryHeader {
  const last = reads.ledger.readLastImport()
  const imported = last && { mirror: last.mirror, sequence: last.sequence }
  return { ...describeState({ reads }, { now: Date.now }, digests), brief, imported }
}

/** What describes a state. */
export type DescribedReads = Pick<ExportSnapshot['reads'], 'snapshots' | 'runs'> & { readonly ledger: LedgerReader }

/** Describes the exported state of some sources, by their digests, as the header of a summary. */
export function describeState(
  { reads }: { readonly reads: DescribedReads },
  { now }: Pick<RecordOptions, 'now'>,
  digests: Digests,
): SummaryHeader {
  const digest = combineDigests(digests)
  const sources: Partial<Record<SourceName, SummarySource>> = {}
  for (const source of SOURCES) {
    const of = digests[source]
    if (of === undefined) continue
    const snapshot = reads.snapshots.readSnapshot(source)
    if (snapshot === null) throw new Error(`${source} has no snapshot`)
    const asOf = reads.runs.readAsOf(source, snapshot)
    sources[source] = { digest: of, snapshot: snapshot.id, asOf, records: snapshot.records }
  }
  const mirror = reads.ledger.readIdentity()
  const common = { format: 1, kind: 'patchmirror-summary', brief: false, imported: null } as const
  return { ...common, mirror, digest, sources, createdAt: dateAfter(reads, now()) }
}

/** A clock further ahead than this was wrong, milliseconds: target mirrors refuse its bundles. */
export const AHEAD_MS = DAY_MS

/** Returns the date of an export: now, but later than the last one, so that dates of one mirror follow its sequence. */
function dateAfter({ ledger }: Pick<DescribedReads, 'ledger'>, now: number): number {
  const last = Math.max(0, ...ledger.listExports().map(({ exportedAt }) => exportedAt))
  return last < now || last > now + AHEAD_MS ? now : last + 1
}

/** Longest wait for a sync that is writing to the database, and the interval between attempts, milliseconds. */
const WAIT_MS = 30 * 60_000
const RETRY_MS = 1_000

/** Options of the record of a state. */
interface RecordOptions {
  readonly dataDir: string
  /** Number of newest states on which later deltas can build, and further sequences. */
  readonly keep: number
  readonly spared: readonly number[]
  readonly now: () => number
}

/** Assigns the sequence of the exported state and stores its summary, for later deltas, and its documents, for thin ones. */
export async function recordState(
  { reads }: ExportSnapshot,
  { dataDir, keep, spared }: RecordOptions,
  { header, summary }: { readonly header: SummaryHeader; readonly summary: Buffer },
  documents: readonly string[] = [],
): Promise<number> {
  const store = openWrites(dataDir)
  try {
    for (const until = performance.now() + WAIT_MS; ;) {
      try {
        const { sequence } = await store.transaction(() => {
          const given = store.ledger.recordExport(header.sources, header.createdAt, summary)
          for (const path of documents) keepDocument(store, given, reads.feeds.readDocument(path))
          store.ledger.forgetSummaries(keep, [...spared, given])
          return Promise.resolve({ commit: true, sequence: given })
        })
        return sequence
      } catch (error) {
        if (systemCode(error) !== 'SQLITE_BUSY' || performance.now() > until) throw error
        await pause(RETRY_MS)
      }
    }
  } finally {
    store.close()
  }
}

/** A larger document is not compressed against its earlier version, bytes as stored. */
const MOST_KEPT = 16 * 2 ** 20

function keepDocument({ ledger }: Writes, sequence: number, document: Document | null): void {
  const isKept = document?.body !== null && (document?.body.length ?? 0) <= MOST_KEPT
  if (document !== null && isKept) ledger.keepDocument(sequence, document)
}
