import { join } from 'node:path'
import { buildArchive } from '../../../archive/build.ts'
import { type BuiltArchive } from '../../../archive/draft.ts'
import { faultOfArchive } from '../../../archive/check.ts'
import { patchArchive } from '../../../archive/patch.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { derivedDir } from '../../../store/database/open.ts'
import { timeOfAges } from '../../../store/runs/age-limit.ts'
import type { SourceValue } from '../../../store/replication/rows.ts'
import type { Writes } from '../../../store/writer.ts'
import { applyRows } from './apply-rows.ts'
import { eachMissing, writeDocument } from './documents/staging.ts'
import { canFill, fillRecords } from './records/fill.ts'
import type { ImportOptions, RowCounts, SourceReport } from './types.ts'

type Carried = NonNullable<SourceValue['archive']>

const EVERY = { get: () => true, find: null, written: null }

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
  const usable = draft !== null && (await isCarried(dir, draft, carried))
  const built = usable ? draft : await buildArchive(store.osv, dir, EVERY.get)
  if (!usable && !(await isCarried(dir, built, carried)))
    throw new MirrorError(
      'bundle',
      'the records do not give the archive that the bundle describes: nothing was changed. Import a full bundle',
    )
  const { file, size, crc32c, sha256 } = built
  const divided = sha256 === carried.sha256
  if (built.patched) store.osv.renewParts(built.written)
  else store.osv.replaceParts(divided ? built.written : [])
  store.osv.replaceArchive({ file, size, crc32c, sha256: carried.sha256, changed: carried.changed })
}

/** Compares a built archive with the bundle's. An archive of an earlier version has a digest over all its bytes. */
async function isCarried(dir: string, built: BuiltArchive, carried: Carried): Promise<boolean> {
  if (built.size !== carried.size || built.crc32c !== carried.crc32c) return false
  if (built.sha256 === carried.sha256) return true
  return (await faultOfArchive(join(dir, built.file), carried, [])) === null
}

/**
 * Applies a source of the bundle within the open transaction: rows, records, documents, archive, snapshot. `staged`:
 * number of documents staged for it; null: none, as in a dry run.
 */
export async function applySource(
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
  const context = { bundle, store, source, runId, again, progress }
  const { row, scope, counts } = await applyRows({ ...context, filled: filled?.records ?? null })
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
  if (source !== 'catalog' && source !== 'identity') return { put: 0, removed: 0 }
  const missing = []
  for await (const document of eachMissing(bundle, store, source, again)) missing.push(document)
  for (const document of missing) {
    if (dryRun) store.carried.putDocument(document.value)
    else await writeDocument(bundle, store, document)
  }
  return { put: missing.length, removed: store.catalog.sweepDocuments() }
}
