import type { SourceName } from '../../../base/domain/sources.ts'
import { isWithheldAbove } from '../../../store/runs/rejected.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { isWithheld } from '../format/withheld.ts'
import { admit, manifestSources } from './admission.ts'
import { nameFault } from './apply.ts'
import { applyDates } from './carried/dates.ts'
import { applyTrustRoot } from './carried/trust-root.ts'
import { stageDocuments } from './documents/staging.ts'
import type { Bundle } from './open.ts'
import { refuseOtherRows } from './rows.ts'
import { type ImportRuns, noteCarriedDoubts, startRuns } from './runs.ts'
import { checkSpace } from './documents/space.ts'
import { applySources, inPublication, readStored, recordImport } from './transaction.ts'
import type { ImportOptions, SourceReport } from './types.ts'

/** A bundle of a series. */
export interface SeriesBundle extends Pick<Bundle, 'manifest' | 'key'> {
  /** Opens it within the transaction that has applied those before it. The caller closes it. */
  open(): Promise<Bundle>
}

/**
 * Bundles that build on each other, whose order the caller has verified: neither their sequences nor their dates are compared with
 * the stored data.
 */
interface SeriesOptions extends Pick<ImportOptions, 'config' | 'store' | 'file' | 'trigger' | 'now'> {
  readonly bundles: readonly SeriesBundle[]
  /** Whether the caller goes back to an older state on purpose; the ledger and the runs record it. */
  readonly rollback: boolean
  /** Whether what is served now may be newer: also where a way back is passed over. */
  readonly goesBack: boolean
  /** Is awaited within the transaction, directly before it commits. */
  readonly beforeCommit: () => Promise<void>
}

/** Verifies all bytes of the bundles and stages their documents: `applySeries` then has less to do. */
export async function stageSeries({
  bundles,
  config,
  store,
}: Pick<SeriesOptions, 'config' | 'store'> & { readonly bundles: readonly Bundle[] }): Promise<void> {
  const { dir } = config.data
  const lock = acquireLock(dir, 'sync')
  try {
    for (const bundle of bundles) {
      refuseOtherRows(bundle.manifest)
      await bundle.verify()
      const missing = await checkSpace({ bundle, store, config })
      for (const [source] of manifestSources(bundle.manifest))
        await stageDocuments(bundle, store, source, missing, dir, () => undefined)
    }
  } catch (error) {
    throw nameFault(error, dir)
  } finally {
    lock.release()
  }
}

/**
 * Applies the bundles in one transaction: readers see the state before the first one until they see the state of the last
 * one. The import is always recorded. Throws as `applyBundle`.
 */
export async function applySeries(options: SeriesOptions): Promise<void> {
  const { config, store, now } = options
  const lock = acquireLock(config.data.dir, 'sync')
  try {
    await store.exclusive(() => store.runs.closeOrphanRuns(now()))
    await applyInOne(options)
  } catch (error) {
    throw nameFault(error, config.data.dir)
  } finally {
    lock.release()
  }
}

async function applyInOne(series: SeriesOptions): Promise<void> {
  const { bundles, rollback, goesBack, beforeCommit } = series
  const last = bundles.at(-1)
  if (last === undefined) throw new Error('a series without a bundle')
  const ending = { ...series, bundle: last }
  const runs = await startRuns(
    ending,
    sourcesToReport(ending),
    bundles.map(({ manifest }) => manifest),
  )
  try {
    await inPublication(series, goesBack, async () => {
      const applied: SourceReport[] = []
      const opened: Bundle[] = []
      for (const one of bundles) {
        const bundle = await one.open()
        opened.push(bundle)
        applied.push(...(await applyOne({ ...series, bundle }, runs)))
      }
      await applyDates(opened, series.store, series.now())
      await applyTrustRoot(opened, series.store)
      const changed = applied.map((one) => [one.source, one.changed] as const)
      runs.end(null, Object.fromEntries(changed), rollback)
      recordImport(ending, rollback)
      await beforeCommit()
      await noteCarriedDoubts(series.store, opened)
      return true
    })
  } catch (error) {
    await runs.fail(nameFault(error, series.config.data.dir))
    throw error
  }
}

async function applyOne(options: ImportOptions, runs: Pick<ImportRuns, 'idOf'>): Promise<SourceReport[]> {
  const { bundle, store } = options
  const stored = readStored(store, bundle.manifest)
  admit(bundle.manifest, stored, true)
  return applySources(options, stored, new Map(), runs)
}

/** The bundle that a series ends with. */
interface Ending {
  readonly bundle: Pick<Bundle, 'manifest' | 'key'>
}

/** Returns the sources whose data or date will differ, or of which other news of what is withheld came. */
function sourcesToReport({ bundle, store }: Pick<SeriesOptions, 'store'> & Ending): SourceName[] {
  return manifestSources(bundle.manifest)
    .filter(([source, { snapshot, asOf }]) => {
      const stored = store.snapshots.readSnapshot(source)
      const date = stored === null ? 0 : store.runs.readAsOf(source, stored)
      const isNews = isWithheld(bundle.manifest, source) !== isWithheldAbove(store, source)
      return stored?.id !== snapshot || Date.parse(asOf) > date || isNews
    })
    .map(([source]) => source)
}
