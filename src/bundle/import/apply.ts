import { readdirSync } from 'node:fs'
import { sweepArchives } from '../../archive/build.ts'
import { refuseFullDisk, reserveFor } from '../../core/disk-space.ts'
import { MirrorError, messageOf, systemCode } from '../../core/errors.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import { acquireLock } from '../../store/database/lock.ts'
import { derivedDir, nameStorageError } from '../../store/database/open.ts'
import { combineDigests } from '../../store/replication/rows.ts'
import type { Writes } from '../../store/writer.ts'
import type { Manifest } from '../format/manifest.ts'
import { type Admission, type StoredSources, admit, manifestSources } from './admission.ts'
import { confirmRows } from './apply-rows.ts'
import { applySource } from './apply-source.ts'
import { eachMissing, stageDocuments } from './documents.ts'
import { digestOthers, prove, refuseOtherFacts } from './proof.ts'
import { refuseOtherRows } from './rows.ts'
import { type ImportRuns, startRuns } from './runs.ts'
import type { ImportOptions, ImportReport, SourceReport } from './types.ts'

/**
 * Applies an open bundle: verifies all of it, stages its documents, and then publishes everything in one transaction, which
 * commits only when the state digest that comes out is the manifest's. Readers have the old snapshot until then. A killed
 * import leaves everything as it was, and is taken up where it was by importing again. Throws `bundle` and `archive` for a
 * bundle that is refused, `locked` while another writes, `storage` for the disk.
 */
export async function applyBundle(options: ImportOptions): Promise<ImportReport> {
  const { config, store, now } = options
  const lock = acquireLock(config.data.dir, 'sync')
  try {
    await store.exclusive(() => store.closeOrphanRuns(now()))
    return await admitAndApply(options)
  } catch (error) {
    throw nameFault(error, config.data.dir)
  } finally {
    lock.release()
  }
}

async function admitAndApply(options: ImportOptions): Promise<ImportReport> {
  const { bundle, store, dryRun = false, allowRollback = false, progress = ignore } = options
  const { manifest } = bundle
  refuseOtherRows(manifest)
  const held = readStored(store, manifest)
  if (options.again === true && manifest.kind === 'delta')
    throw new MirrorError('usage', 'everything can be written anew from a full bundle alone')
  const admission = admit(manifest, held, allowRollback)
  if (admission.verdict === 'same' && options.again !== true) {
    // Of the manifest alone, which is signed: nothing else is taken.
    const renewed = !dryRun && (await confirm(options, held, admission))
    return { ...report(options, admission, []), renewed }
  }
  await bundle.verify((done, total) => {
    progress({ phase: 'verify', unit: 'bytes', done, total })
  })
  const missing = dryRun ? 0 : await makeRoom(options)
  const staged = new Map<SourceName, number>()
  if (dryRun)
    return report(options, admission, await publish(options, admission, held, staged, null))
  const runs = await startRuns(options, [...held.keys()])
  try {
    for (const source of held.keys())
      staged.set(
        source,
        await stageDocuments(bundle, store, source, missing, options.config.data.dir, progress),
      )
    return report(options, admission, await publish(options, admission, held, staged, runs))
  } catch (error) {
    await runs.fail(nameFault(error, options.config.data.dir))
    throw error
  }
}

const ignore: OnProgress = () => undefined

function readStored(store: Writes, manifest: Manifest): StoredSources {
  const { mirror, sequence } = manifest
  return new Map(
    manifestSources(manifest).map(([source]) => {
      const snapshot = store.readSnapshot(source)
      const asOf = snapshot && Math.max(snapshot.asOf, store.readConfirmedAt(source) ?? 0)
      const digest = store.carried.digestOf(source)
      const imported = store.readLastImportOf(source)
      const numbered = store.listNumbered(mirror, sequence, source)
      return [source, { digest, asOf, imported, numbered }]
    }),
  )
}

/** Beside the write-ahead log, and what SQLite and the file system keep: least and most. */
const SLACK = [4 * 2 ** 20, 64 * 2 ** 20] as const

/** Throws `storage` when the disk is too small for what is to come. The number of documents that are missing. */
async function makeRoom({ bundle, store, config, again }: ImportOptions): Promise<number> {
  const { manifest } = bundle
  let documents = 0
  let bytes = 0
  for (const [source] of manifestSources(manifest))
    for await (const { value } of eachMissing(bundle, store, source, again)) {
      documents++
      bytes += value.stored
    }
  for (const { name, size } of manifest.members) {
    if (name.startsWith('rows/')) bytes += 2 * size // in the log and in the database
    if (name.startsWith('osv/')) bytes += 3 * size // and in the derived archive
  }
  if (manifest.kind === 'delta') bytes += store.readArchive()?.size ?? 0
  await refuseFullDisk(config.data.dir, bytes + reserveFor(bytes, ...SLACK))
  return documents
}

/**
 * The content is stored already. A later date, a higher number or a rollback is recorded in the ledger as what was imported
 * last. Returns whether there was any.
 */
async function confirm(
  options: ImportOptions,
  held: StoredSources,
  { rollback }: Admission,
): Promise<boolean> {
  const { bundle, store } = options
  const { mirror, sequence } = bundle.manifest
  refuseOtherFacts(store, bundle.manifest)
  const younger = manifestSources(bundle.manifest)
    .filter(([source, { asOf }]) => Date.parse(asOf) > (held.get(source)?.asOf ?? 0))
    .map(([source]) => source)
  const counts = [...held.values()].some(
    ({ imported: last }) => last === null || (last.mirror === mirror && last.sequence < sequence),
  )
  if (younger.length === 0 && !counts && !rollback) return false
  const runs = await startRuns(options, rollback ? [...held.keys()] : younger)
  await store.transaction(async () => {
    for (const source of younger) await confirmRows(options, source)
    runs.end('nothing changed', {}, rollback)
    recordImport(options, rollback)
    return { commit: true }
  })
  return true
}

/** One transaction: all rows of all sources, the archive, the snapshots, the proof, the runs and the ledger. */
async function publish(
  options: ImportOptions,
  { rollback }: Admission,
  held: StoredSources,
  staged: ReadonlyMap<SourceName, number>,
  runs: ImportRuns | null,
): Promise<SourceReport[]> {
  const { store, config, bundle } = options
  const previous = store.readArchive()?.file
  const dir = derivedDir(config.data.dir)
  const before = readdirSync(dir)
  const applied: SourceReport[] = []
  let committed = false
  try {
    await store.transaction(async () => {
      const others = digestOthers(store, bundle.manifest)
      for (const [source, { digest }] of manifestSources(bundle.manifest)) {
        const documents = staged.get(source) ?? null
        if (held.get(source)?.digest === digest && options.again !== true)
          await confirmRows(options, source)
        else applied.push(await applySource(options, source, runs?.idOf(source) ?? 0, documents))
      }
      options.progress?.({ phase: 'prove', unit: 'records', done: 0, total: null })
      prove(store, bundle.manifest, others)
      const changed = applied.map((one) => [one.source, one.changed] as const)
      runs?.end(null, Object.fromEntries(changed), rollback)
      if (runs !== null) recordImport(options, rollback)
      return { commit: runs !== null }
    })
    committed = runs !== null
  } finally {
    // An archive that nobody will serve must not fill the disk.
    sweepArchives(dir, committed ? [store.readArchive()?.file ?? '', previous ?? ''] : before)
  }
  store.checkpoint()
  return applied
}

function recordImport({ store, bundle, file, now }: ImportOptions, rollback: boolean): void {
  const { mirror, sequence, kind, digest, createdAt } = bundle.manifest
  const sources = manifestSources(bundle.manifest)
  const brought = sources.filter(([source, one]) => {
    // From a rollback on, the mirror's numbers count from there, also for what did not change.
    if (rollback) return true
    // A later bundle brought just this state: what came between the two is older all the same.
    const last = store.readLastImportOf(source)
    const later = last?.mirror === mirror && last.sequence > sequence
    return !(later && last.sources[source] === one.digest)
  })
  store.recordImport({
    ...{ mirror, sequence, kind, digest, rollback, file, keyId: bundle.key },
    sources: Object.fromEntries(brought.map(([source, one]) => [source, one.digest])),
    createdAt: Date.parse(createdAt),
    asOf: Math.min(...sources.map(([, { asOf }]) => Date.parse(asOf))),
    importedAt: now(),
  })
}

function report(
  options: ImportOptions,
  admission: Admission,
  sources: SourceReport[],
): ImportReport {
  const { bundle, dryRun = false, again = false } = options
  const { verdict, rollback } = admission
  const { mirror, sequence, kind, digest } = bundle.manifest
  const outcome = verdict === 'same' && !again ? 'same' : dryRun ? 'dry run' : 'applied'
  const result = { mirror, sequence, kind, digest, key: bundle.key, rollback, sources }
  return { ...result, outcome, dryRun, renewed: false, held: digestThen(options) }
}

/** Of the mirror with what the bundle brings: that is known of the bundle's sources, and only the others are read. */
function digestThen({ bundle, store }: ImportOptions): string {
  const digests: Partial<Record<SourceName, string>> = {}
  for (const source of store.carried.listStoredSources())
    if (bundle.manifest.sources[source] === undefined)
      digests[source] = store.carried.digestOf(source)
  for (const [source, { digest }] of manifestSources(bundle.manifest)) digests[source] = digest
  return combineDigests(digests)
}

function nameFault(error: unknown, dataDir: string): unknown {
  if (systemCode(error)?.startsWith('SQLITE_CONSTRAINT') === true)
    return new MirrorError('bundle', `its rows contradict each other (${messageOf(error)})`, {
      cause: error,
    })
  // Texts that are JSON in the store are checked as they are read: what still is none was held already, or is a lie.
  if (error instanceof SyntaxError || isBadJson(error))
    return new MirrorError(
      'bundle',
      `what it brings, or what is held, has text that is no JSON (${messageOf(error)}): nothing was changed. ` +
        'Import a full bundle with --again',
      { cause: error },
    )
  return nameStorageError(error, dataDir)
}

function isBadJson(error: unknown): boolean {
  return systemCode(error) === 'SQLITE_ERROR' && messageOf(error).includes('malformed JSON')
}
