import { readdirSync } from 'node:fs'
import { sweepArchives } from '../../../archive/build.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { derivedDir } from '../../../store/database/open.ts'
import type { Writes } from '../../../store/writer.ts'
import type { Manifest } from '../format/manifest.ts'
import { type StoredSources, manifestSources } from './admission.ts'
import { confirmRows } from './apply-rows.ts'
import { applySource } from './apply-source.ts'
import { digestOthers, prove } from './proof.ts'
import type { ImportRuns } from './runs.ts'
import type { ImportOptions, SourceReport } from './types.ts'

/** Reads the stored state of each source of a bundle; this takes a pass over their rows. */
export function readStored(store: Writes, manifest: Manifest): StoredSources {
  const { mirror, sequence } = manifest
  return new Map(
    manifestSources(manifest).map(([source]) => {
      const snapshot = store.snapshots.readSnapshot(source)
      const asOf = snapshot && store.runs.readAsOf(source, snapshot)
      const digest = store.carried.digestOf(source)
      const imported = store.ledger.readLastImportOf(source)
      const numbered = store.ledger.listNumbered(mirror, sequence, source)
      return [source, { digest, asOf, imported, numbered }]
    }),
  )
}

/**
 * Runs `work` in one transaction, which commits when it resolves with true, and removes the archives that are not used
 * afterwards: an unused archive must not fill the disk.
 */
export async function inPublication(
  { store, config }: Pick<ImportOptions, 'store' | 'config'>,
  work: () => Promise<boolean>,
): Promise<void> {
  const previous = store.osv.readArchive()?.file
  const dir = derivedDir(config.data.dir)
  const before = readdirSync(dir)
  let committed = false
  try {
    committed = (await store.transaction(async () => ({ commit: await work() }))).commit
  } finally {
    sweepArchives(dir, committed ? [store.osv.readArchive()?.file ?? '', previous ?? ''] : before)
  }
  store.checkpoint()
}

/** Applies all sources of a bundle within the open transaction: rows, the archive, the snapshots, the proof. */
export async function applySources(
  options: ImportOptions,
  stored: StoredSources,
  staged: ReadonlyMap<SourceName, number>,
  runs: Pick<ImportRuns, 'idOf'> | null,
): Promise<SourceReport[]> {
  const { store, bundle } = options
  const applied: SourceReport[] = []
  const others = digestOthers(store, bundle.manifest)
  for (const [source, { digest }] of manifestSources(bundle.manifest)) {
    const documents = staged.get(source) ?? null
    if (stored.get(source)?.digest === digest && options.again !== true) await confirmRows(options, source)
    else applied.push(await applySource(options, source, runs?.idOf(source) ?? 0, documents))
  }
  options.progress?.({ phase: 'prove', unit: 'records', done: 0, total: null })
  prove(store, bundle.manifest, others)
  return applied
}

/** Records a bundle in the ledger, within the transaction that applies it. */
export function recordImport({ store, bundle, file, now }: ImportOptions, rollback: boolean): void {
  const { mirror, sequence, kind, digest, createdAt } = bundle.manifest
  const sources = manifestSources(bundle.manifest)
  const brought = sources.filter(([source, one]) => {
    // After a rollback, the source mirror's sequence counts from there, also for unchanged sources.
    if (rollback) return true
    // A later bundle contained this state too: bundles between the two are still older.
    const last = store.ledger.readLastImportOf(source)
    const later = last?.mirror === mirror && last.sequence > sequence
    return !(later && last.sources[source] === one.digest)
  })
  store.ledger.recordImport({
    mirror,
    sequence,
    kind,
    digest,
    rollback,
    file,
    keyId: bundle.key,
    sources: Object.fromEntries(brought.map(([source, one]) => [source, one.digest])),
    createdAt: Date.parse(createdAt),
    asOf: Math.min(...sources.map(([, { asOf }]) => Date.parse(asOf))),
    importedAt: now(),
  })
}
