import { readdirSync } from 'node:fs'
import { buildArchive, sweepArchives } from '../../../archive/build.ts'
import { type SourceName, isPrivateSource } from '../../../base/domain/sources.ts'
import { derivedDir } from '../../../store/database/open.ts'
import type { Writes } from '../../../store/writes.ts'
import type { BuiltArchive } from '../../../archive/draft.ts'
import { patchArchive } from '../../../archive/patch.ts'
import { MirrorError } from '../../../base/errors.ts'
import { timeOfAges } from '../../../store/runs/age-limit.ts'
import type { SourceValue } from '../../../store/replication/rows.ts'
import type { Manifest } from '../format/manifest.ts'
import { type StoredSources, manifestSources } from './admission.ts'
import { applyRows, confirmRows } from './apply-rows.ts'
import { digestOthers, prove } from './proof.ts'
import type { Bundle } from './open.ts'
import type { ImportRuns } from './runs.ts'
import type { ImportOptions, RowCounts, SourceReport } from './types.ts'
import { eachMissing, proveDocument, writeDocument } from './documents/staging.ts'
import { canFill, fillRecords } from './records/fill.ts'

/** Reads the stored state of each source of a bundle; this takes a pass over their rows, unless they are known. */
export function readStored(store: Writes, manifest: Manifest): StoredSources {
  const { mirror, sequence } = manifest
  return new Map(
    manifestSources(manifest).map(([source]) => {
      const snapshot = store.snapshots.readSnapshot(source)
      const asOf = snapshot && store.runs.readAsOf(source, snapshot)
      const digest = store.carried.known.digestOf(source)
      const imported = store.ledger.readLastImportOf(source)
      const numbered = store.ledger.listNumbered(mirror, sequence, source)
      return [source, { digest, asOf, imported, numbered }]
    }),
  )
}

/**
 * Runs `work` in one transaction, which commits when it resolves with true, and removes the archives that are not used
 * afterwards: an unused archive must not fill the disk. `goesBack`: what is served now may be newer.
 */
export async function inPublication(
  { store, config, now }: Pick<ImportOptions, 'store' | 'config' | 'now'>,
  goesBack: boolean,
  work: () => Promise<boolean>,
): Promise<void> {
  const previous = store.osv.readArchive()?.file
  const dir = derivedDir(config.data.dir)
  const before = readdirSync(dir)
  let committed = false
  try {
    const publication = await store.transaction(async () => {
      if (goesBack) store.feeds.raiseDateFloor(now())
      return { commit: await work() }
    })
    committed = publication.commit
  } finally {
    store.carried.known.forget() // a rollback does not show in the number of changes
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
export function recordImport(
  {
    store,
    bundle,
    file,
    now,
  }: Pick<ImportOptions, 'store' | 'file' | 'now'> & {
    readonly bundle: Pick<Bundle, 'manifest' | 'key'>
  },
  rollback: boolean,
): void {
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

type Carried = NonNullable<SourceValue['archive']>

const EVERY = { get: () => true, find: null }

/** How the records of the open transaction differ from the published archive. */
type Archived = 'same' | 'changed' | BuiltArchive

/**
 * Builds the archive from the records in the open transaction, unless it was built as they were stored, and publishes it
 * with the bundle's date. Throws `bundle` unless it equals the source mirror's archive to the byte: then the records
 * differ too.
 */
async function applyArchive(store: Writes, dir: string, carried: Carried, archived: Archived): Promise<void> {
  const stored = store.osv.readArchive()
  if (archived === 'same' && stored?.sha256 === carried.sha256) {
    store.osv.replaceArchive({ ...stored, changed: carried.changed })
    return
  }
  const draft = typeof archived === 'object' ? archived : await patchArchive(store.osv, dir, EVERY)
  // The published file may be damaged: the stored records are authoritative.
  const usable = draft !== null && isCarried(draft, carried)
  const built = usable ? draft : await buildArchive(store.osv, dir, EVERY.get)
  if (!usable && !isCarried(built, carried))
    throw new MirrorError(
      'bundle',
      'the records do not give the archive that the bundle describes: nothing was changed. Import a full bundle',
    )
  const { file, size, crc32c, sha256 } = built
  if (built.patched) store.osv.renewParts(built.written)
  else store.osv.replaceParts(built.written)
  store.osv.replaceArchive({ file, size, crc32c, sha256, changed: carried.changed })
}

function isCarried(built: BuiltArchive, carried: Carried): boolean {
  return built.size === carried.size && built.crc32c === carried.crc32c && built.sha256 === carried.sha256
}

/**
 * Applies a source of the bundle within the open transaction: rows, records, documents, archive, snapshot. `staged`:
 * number of documents staged for it; null: none, as in a dry run.
 */
async function applySource(
  options: ImportOptions,
  source: SourceName,
  runId: number,
  staged: number | null,
): Promise<SourceReport> {
  const { bundle, store, config, now, dryRun = false, progress = () => undefined } = options
  const before = store.snapshots.readSnapshot(source)?.id ?? null
  const { again = false } = options
  const fills = source === 'osv' && canFill(bundle, store)
  const filled = fills ? await fillRecords(options, progress) : null
  const context = { bundle, store, source, runId, again, now, progress }
  const { row, scope, counts } = await applyRows({ ...context, filled: filled?.records ?? null })
  if (source === 'osv') store.carried.known.wrote(store.osv.listWritten()) // the publication forgets them
  const documents = await applyDocuments(options, source, dryRun)
  const put = staged ?? documents.put
  if (put + documents.removed > 0) counts['catalog-document'] = { ...documents, put }
  progress({ phase: 'archive', unit: 'records', done: 0, total: null })
  if (source === 'osv') {
    if (row.archive === null) throw new MirrorError('bundle', 'it does not describe the archive')
    const archived = filled?.built ?? (counts['osv-record'] === undefined ? 'same' : 'changed')
    await applyArchive(store, derivedDir(config.data.dir), row.archive, archived)
  }
  store.carried.forgetUpstream(source, now())
  const { snapshot: id, asOf, records, whole } = row
  const published = { source, id, runId, publishedAt: now(), asOf, records, whole, scope }
  store.snapshots.replaceSnapshot(published)
  store.changes.forgetOldChanges(source, timeOfAges(store, now()), config)
  const confirmed = bundle.manifest.sources[source]?.asOf ?? ''
  return { source, before, after: id, asOf: confirmed, records, changed: counts }
}

/**
 * Replaces documents that are stored with other bytes, where no reader sees an incomplete one; removes unreferenced
 * ones.
 */
async function applyDocuments(
  { bundle, store, again = false }: ImportOptions,
  source: SourceName,
  dryRun: boolean,
): Promise<RowCounts> {
  if (!isPrivateSource(source)) return { put: 0, removed: 0 }
  const missing = []
  for await (const document of eachMissing(bundle, store, source, again)) missing.push(document)
  for (const document of missing) {
    if (dryRun) {
      await proveDocument(bundle, document)
      store.carried.putDocument(document.value)
    } else await writeDocument(bundle, store, document)
  }
  return { put: missing.length, removed: store.catalog.sweepDocuments() }
}
