import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { nameStorageError } from '../../../store/database/faults.ts'
import { combineDigests } from '../../../store/replication/rows.ts'
import { isWithheldAbove } from '../../../store/runs/rejected.ts'
import { isWithheld } from '../format/withheld.ts'
import { type Admission, type StoredSources, admit, manifestSources } from './admission.ts'
import { confirmRows } from './apply-rows.ts'
import { applyDates } from './carried/dates.ts'
import { applyTrustRoot, otherTrustRoot } from './carried/trust-root.ts'
import { stageDocuments } from './documents/staging.ts'
import { refuseOtherFacts } from './proof.ts'
import { refuseOtherRows } from './rows.ts'
import { type ImportRuns, noteCarriedDoubts, startRuns } from './runs.ts'
import { checkSpace } from './documents/space.ts'
import { applySources, inPublication, readStored, recordImport } from './transaction.ts'
import type { ImportOptions, ImportReport, SourceReport } from './types.ts'

/**
 * Applies an open bundle: verifies all of it, stages its documents, and then publishes everything in one transaction,
 * which commits only if the resulting state digest is the manifest's. Until then readers see the old snapshot. A killed
 * import leaves the published state unchanged; importing again continues it. Throws `bundle` and `archive` for a refused
 * bundle, `locked` while another process writes, `storage` for the disk.
 */
export async function applyBundle(options: ImportOptions): Promise<ImportReport> {
  const { config, store, now } = options
  const lock = acquireLock(config.data.dir, 'sync')
  try {
    await store.exclusive(() => store.runs.closeOrphanRuns(now()))
    return await admitAndApply(options)
  } catch (error) {
    throw nameFault(error, config.data.dir)
  } finally {
    store.carried.known.forget()
    lock.release()
  }
}

async function admitAndApply(options: ImportOptions): Promise<ImportReport> {
  const { bundle, store, dryRun = false, allowRollback = false, progress = ignore } = options
  const { manifest } = bundle
  refuseOtherRows(manifest)
  const stored = readStored(store, manifest)
  if (options.again === true && manifest.kind === 'delta')
    throw new MirrorError('usage', '--again needs a full bundle: a delta cannot write everything again')
  const admission = admit(manifest, stored, allowRollback)
  if (admission.verdict === 'same' && options.again !== true) {
    // Only what the manifest describes is used, which is signed: its own data, and the trust root, which is verified as it is read.
    const renewed = !dryRun && (await confirm(options, stored, admission))
    return { ...report(options, admission, []), renewed }
  }
  await bundle.verify((done, total) => {
    progress({ phase: 'verify', unit: 'bytes', done, total })
  })
  const missing = await checkSpace(options)
  const staged = new Map<SourceName, number>()
  if (dryRun) return report(options, admission, await publish(options, admission, stored, staged, null))
  const runs = await startRuns(options, [...stored.keys()])
  try {
    for (const source of stored.keys())
      staged.set(source, await stageDocuments(bundle, store, source, missing, options.config.data.dir, progress))
    return report(options, admission, await publish(options, admission, stored, staged, runs))
  } catch (error) {
    await runs.fail(nameFault(error, options.config.data.dir))
    throw error
  }
}

const ignore: OnProgress = () => undefined

/**
 * Records in the ledger that the stored content was imported again with a later date, a higher sequence or a rollback, or
 * with other news of what is withheld.
 * Returns whether there was any of these.
 */
async function confirm(options: ImportOptions, stored: StoredSources, { rollback }: Admission): Promise<boolean> {
  const { bundle, store } = options
  const { mirror, sequence, createdAt } = bundle.manifest
  refuseOtherFacts(store, bundle.manifest)
  const counts = [...stored.values()].some(
    ({ imported: last }) => last === null || (last.mirror === mirror && last.sequence < sequence),
  )
  const isLatest = [...stored.values()].every(
    ({ imported: last }) => last === null || (last.mirror === mirror && last.createdAt <= Date.parse(createdAt)),
  )
  const trust = isLatest || rollback ? await otherTrustRoot([bundle], store) : null
  const isNews = (source: SourceName): boolean =>
    isLatest && isWithheld(bundle.manifest, source) !== isWithheldAbove(store, source)
  const younger = manifestSources(bundle.manifest)
    .filter(([source, { asOf }]) => {
      const later = Date.parse(asOf) - (stored.get(source)?.asOf ?? 0)
      return later > 0 || (later === 0 && isNews(source))
    })
    .map(([source]) => source)
  if (younger.length === 0 && !counts && !rollback && trust === null) return false
  const runs = await startRuns(options, rollback ? [...stored.keys()] : younger)
  await store.transaction(async () => {
    if (trust !== null) store.catalog.putCarriedTrust(trust)
    for (const source of younger) await confirmRows(options, source)
    runs.end('nothing changed', {}, rollback)
    recordImport(options, rollback)
    return { commit: true }
  })
  return true
}

/** Publishes the bundle in one transaction; with `runs` null it is rolled back, as in a dry run. */
async function publish(
  options: ImportOptions,
  { rollback }: Admission,
  stored: StoredSources,
  staged: ReadonlyMap<SourceName, number>,
  runs: ImportRuns | null,
): Promise<SourceReport[]> {
  let applied: SourceReport[] = []
  await inPublication(options, rollback, async () => {
    applied = await applySources(options, stored, staged, runs)
    await applyDates([options.bundle], options.store, options.now())
    await applyTrustRoot([options.bundle], options.store)
    const changed = applied.map((one) => [one.source, one.changed] as const)
    runs?.end(null, Object.fromEntries(changed), rollback)
    if (runs !== null) recordImport(options, rollback)
    await noteCarriedDoubts(options.store, [options.bundle])
    return runs !== null
  })
  return applied
}

function report(options: ImportOptions, admission: Admission, sources: SourceReport[]): ImportReport {
  const { bundle, dryRun = false } = options
  const { mirror, sequence, kind, digest } = bundle.manifest
  const outcome = outcomeOf(options, admission)
  const named = manifestSources(bundle.manifest).map(([source]) => source)
  const withheld = named.filter((source) => isWithheld(bundle.manifest, source))
  const result = { mirror, sequence, kind, digest, key: bundle.key, rollback: admission.rollback, withheld, sources }
  return { ...result, outcome, dryRun, renewed: false, held: digestThen(options) }
}

function outcomeOf({ dryRun = false, again = false }: ImportOptions, { verdict }: Admission): ImportReport['outcome'] {
  if (verdict === 'same' && !again) return 'same'
  return dryRun ? 'dry run' : 'applied'
}

/** Returns the mirror's state digest after the import: the bundle's sources are known, the others are read. */
function digestThen({ bundle, store }: ImportOptions): string {
  const digests: Partial<Record<SourceName, string>> = {}
  for (const source of store.carried.listStoredSources())
    if (bundle.manifest.sources[source] === undefined) digests[source] = store.carried.known.digestOf(source)
  for (const [source, { digest }] of manifestSources(bundle.manifest)) digests[source] = digest
  return combineDigests(digests)
}

/** Names what makes an import fail, for the operator. */
export function nameFault(error: unknown, dataDir: string): unknown {
  if (systemCode(error)?.startsWith('SQLITE_CONSTRAINT') === true)
    return new MirrorError('bundle', `its rows contradict each other (${messageOf(error)})`, {
      cause: error,
    })
  // Stored JSON texts are validated when they are read: an invalid one is stored already, or the bundle is forged.
  if (error instanceof SyntaxError || isBadJson(error))
    return new MirrorError(
      'bundle',
      `its data or the stored data has a text that is not JSON (${messageOf(error)}): nothing was changed. ` +
        'Import a full bundle with --again',
      { cause: error },
    )
  return nameStorageError(error, dataDir)
}

function isBadJson(error: unknown): boolean {
  return systemCode(error) === 'SQLITE_ERROR' && messageOf(error).includes('malformed JSON')
}
