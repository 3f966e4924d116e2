import { join } from 'node:path'
import { DAY_MS } from '../../core/time.ts'
import { sha256Hex } from '../../core/digest.ts'
import { type BuiltArchive, buildArchive } from '../../archive/build.ts'
import { faultOfArchive } from '../../archive/check.ts'
import { patchArchive } from '../../archive/patch.ts'
import { MirrorError } from '../../core/errors.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import { gzipMember } from '../../store/database/gzip.ts'
import { derivedDir } from '../../store/database/open.ts'
import type { RecordValue, SourceValue } from '../../store/replication/rows.ts'
import type { Writes } from '../../store/writer.ts'
import { openSource } from '../../zip/reader.ts'
import type { Manifest } from '../format/manifest.ts'
import { applyRows } from './apply-rows.ts'
import { eachMissing, writeDocument } from './documents/staging.ts'
import type { Bundle } from './open.ts'
import type { ImportOptions, RowCounts, SourceReport } from './types.ts'

/** Limits for an archive in a bundle: a record is a few kilobytes. */
export const ARCHIVE_LIMITS = { maxMemberBytes: 2 ** 29 }
const ENDING = '.json'

/** Returns the name of the member with the bundle's records. */
export function archiveName({ kind }: Pick<Manifest, 'kind'>): string {
  return kind === 'full' ? 'osv/all.zip' : 'osv/changed.zip'
}

/** Stores the staged records of `store.incoming` with their bytes from the bundle. Throws `bundle` if one is missing. */
async function applyRecords(bundle: Bundle, store: Writes, progress: OnProgress): Promise<void> {
  const { incoming } = store.carried
  const total = incoming.count()
  if (total === 0) return
  const name = archiveName(bundle.manifest)
  const archive = await openSource(bundle.source(name), ARCHIVE_LIMITS)
  let wanted: RecordValue | null = null
  let done = 0
  await archive.readMembers(
    (entry) => {
      if (!entry.name.endsWith(ENDING)) return false
      wanted = incoming.read(entry.name.slice(0, -ENDING.length))
      return wanted !== null
    },
    (entry, member) => {
      const id = entry.name.slice(0, -ENDING.length)
      const value = wanted?.key === id ? wanted : incoming.read(id)
      if (value === null) return
      if ('refused' in member)
        throw new MirrorError('bundle', `record ${id} in ${name}: ${member.refused}`)
      putRecord(store, value, member)
      incoming.drop(id)
      if (++done % 1000 === 0 || done === total)
        progress({ phase: 'records', unit: 'records', done, total })
    },
  )
  const first = incoming.first()
  if (first !== null)
    throw new MirrorError('bundle', `${name} does not contain the record ${first}`)
}

function putRecord(
  store: Writes,
  { key, modified, crc32, size, sha256, changed, asOf }: RecordValue,
  { content, deflated }: { content: Buffer; deflated: Buffer },
): void {
  if (content.length !== size || sha256Hex(content) !== sha256)
    throw new MirrorError('bundle', `record ${key} does not have the bytes that its row names`)
  const body = gzipMember(deflated, crc32, size)
  const digest = Buffer.from(sha256, 'hex')
  store.osv.putRecord({ id: key, modified, crc32, size, sha256: digest, body, asOf }, changed)
}

type Carried = NonNullable<SourceValue['archive']>

const EVERY = { get: () => true, find: null }

/**
 * Builds the archive from the records in the open transaction and publishes it with the bundle's date. Throws `bundle`
 * unless it equals the source mirror's archive to the byte: then the records differ too.
 */
async function applyArchive(
  store: Writes,
  dir: string,
  carried: Carried,
  touched: boolean,
): Promise<void> {
  const stored = store.osv.readArchive()
  if (!touched && stored?.sha256 === carried.sha256) {
    store.osv.replaceArchive({ ...stored, changed: carried.changed })
    return
  }
  const patched = await patchArchive(store.osv, dir, EVERY)
  // The published file may be damaged: the stored records are authoritative.
  const usable = patched !== null && (await isCarried(dir, patched, carried))
  const built = usable ? patched : await buildArchive(store.osv, dir, EVERY.get)
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
  const { row, scope, counts } = await applyRows({ bundle, store, source, runId, again, progress })
  const touched = store.carried.incoming.count() + (counts['osv-record']?.removed ?? 0) > 0
  if (source === 'osv') await applyRecords(bundle, store, progress)
  const documents = await applyDocuments(options, source, dryRun)
  const put = staged ?? documents.put
  if (put + documents.removed > 0) counts['catalog-document'] = { ...documents, put }
  progress({ phase: 'archive', unit: 'records', done: 0, total: null })
  if (source === 'osv') {
    if (row.archive === null) throw new MirrorError('bundle', 'it does not describe the archive')
    await applyArchive(store, derivedDir(config.data.dir), row.archive, touched)
  }
  store.carried.forgetUpstream(source, now())
  const { snapshot: id, asOf, records, whole } = row
  const published = { source, id, runId, publishedAt: now(), asOf, records, whole, scope }
  store.snapshots.replaceSnapshot(published)
  store.changes.forgetChanges(source, now() - config.data.changeDays * DAY_MS)
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
