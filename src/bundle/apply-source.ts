import { MirrorError } from '../errors.ts'
import { derivedDir } from '../store/database.ts'
import type { SourceName } from '../store/runs.ts'
import { applyArchive, applyRecords } from './apply-osv.ts'
import { applyRows } from './apply-rows.ts'
import type { ImportOptions, RowCounts, SourceReport } from './import-types.ts'
import { atOnce, eachMissing, storeDocument } from './stage.ts'

/**
 * Makes a source what the bundle says, within the transaction that is open: rows, records, documents, archive, snapshot.
 * `staged`: how many documents were staged for it; null: none were, as in a dry run.
 */
export async function applySource(
  options: ImportOptions,
  source: SourceName,
  runId: number,
  staged: number | null,
): Promise<SourceReport> {
  const { bundle, store, config, now, dryRun = false, progress = () => undefined } = options
  const before = store.readSnapshot(source)?.id ?? null
  const { again = false } = options
  const { counts, value } = await applyRows({ bundle, store, source, runId, again, progress })
  const touched = store.incoming.count() + (counts['osv-record']?.removed ?? 0) > 0
  if (source === 'osv') await applyRecords(bundle, store, progress)
  const documents = await applyDocuments(options, source, dryRun)
  const put = staged ?? documents.put
  if (put + documents.removed > 0) counts['catalog-document'] = { ...documents, put }
  const row = value ?? [...store.carried.eachRow(source, 'source')][0]?.value ?? null
  if (row === null) throw new MirrorError('bundle', `it does not say which snapshot ${source} is`)
  progress({ phase: 'archive', unit: 'records', done: 0, total: null })
  if (source === 'osv') {
    if (row.archive === null) throw new MirrorError('bundle', 'it does not describe the archive')
    await applyArchive(store, derivedDir(config.data.dir), row.archive, touched)
  }
  store.forgetUpstream(source, now())
  const { snapshot: id, asOf, records, whole } = row
  store.replaceSnapshot({ source, id, runId, publishedAt: now(), asOf, records, whole })
  store.forgetChanges(source, now() - config.data.changeDays * 86_400_000)
  const confirmed = bundle.manifest.sources[source]?.asOf ?? ''
  return { source, before, after: id, asOf: confirmed, records, changed: counts }
}

/** Documents that are held with other bytes are replaced here, where no reader sees it half done; what is not named goes. */
async function applyDocuments(
  { bundle, store, again = false }: ImportOptions,
  source: SourceName,
  dryRun: boolean,
): Promise<RowCounts> {
  if (source !== 'catalog' && source !== 'identity') return { put: 0, removed: 0 }
  const missing = []
  for await (const document of eachMissing(bundle, store, source, again)) missing.push(document)
  for (const document of missing) {
    if (dryRun) store.putDocument(document.value)
    else await storeDocument(bundle, store, document, atOnce)
  }
  return { put: missing.length, removed: store.sweepDocuments() }
}
