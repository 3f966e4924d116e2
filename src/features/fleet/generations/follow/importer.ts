import { existsSync, rmSync } from 'node:fs'
import type { Config } from '../../../../config/schema.ts'
import { SOURCES, type SourceName } from '../../../../base/domain/sources.ts'
import { MirrorError, messageOf } from '../../../../base/errors.ts'
import { rememberState } from '../../../bundles/export/record-state.ts'
import type { KeyTrust } from '../../../bundles/format/keys.ts'
import { type Bundle, openFiles } from '../../../bundles/import/open.ts'
import { type SeriesBundle, applySeries, stageSeries } from '../../../bundles/import/series.ts'
import { isThin } from '../../../bundles/thin/format.ts'
import { judgeThin, openThin } from '../../../bundles/thin/whole.ts'
import { type Writes, openWrites } from '../../../../store/writes.ts'
import type { LogPart } from './log-part.ts'
import { refuseGeneration } from '../format/refusals.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { type Position, type StoredPosition, createStoredPosition, ledgerName } from '../position.ts'
import { type ChosenBundle, type DownloadedBundle, downloadBundles, wholeOf } from './bundles.ts'
import { withReads } from '../../../../store/reads.ts'

/** How bundles become the served state. */
interface Commitment {
  readonly position: Position
  readonly rollback: boolean
  /** Whether what is served now may be newer. */
  readonly goesBack: boolean
  /** What replaces a part of the change log; null: the import logs its own changes. */
  readonly log: LogPart | null
  /** Is awaited when everything but the commit is done. */
  readonly beforeCommit: () => Promise<void>
}

/** The served data of a follower. */
export interface Importer extends StoredPosition {
  readSnapshots(): Partial<Record<SourceName, string>>
  /** The state digests of the stored sources; this reads all rows. */
  readDigests(): Partial<Record<SourceName, string>>
  /** Fetches bundles from the store. */
  download(store: ObjectStore, chosen: readonly ChosenBundle[]): Promise<DownloadedBundle[]>
  /** Verifies bundles and does all that can be done while the old state is served: a thin one behind others needs their state. */
  stage(bundles: readonly DownloadedBundle[]): Promise<void>
  /** Publishes the bundles in one transaction. */
  apply(bundles: readonly DownloadedBundle[], commitment: Commitment): Promise<void>
  /** Makes the applied state one on which this mirror's own deltas can build. */
  remember(): Promise<void>
  discard(path: string): void
}

/** Where bundles are imported, and whose are accepted. */
interface ImporterDeps {
  readonly dataDir: string
  readonly config: Pick<Config, 'data' | 'bundle'>
  readonly trust: KeyTrust
  readonly now: () => number
}

/** Creates the importer of a data folder. */
export function createImporter({ dataDir, config, trust, now }: ImporterDeps): Importer {
  /** Of all steps to one generation: what it read of the rows, it does not read again unless they changed. */
  let kept: Writes | null = null
  const opened = (): Writes => (kept ??= openWrites(dataDir))
  const opening = (): Opening => ({ dataDir, store: opened(), trust: { ...trust, now: null } })
  return {
    ...createStoredPosition(dataDir),
    readSnapshots: () => readSnapshots(dataDir),
    readDigests() {
      const { listStoredSources, known } = opened().carried
      return Object.fromEntries(listStoredSources().map((source) => [source, known.digestOf(source)]))
    },
    download: (store, chosen) => downloadBundles(store, dataDir, chosen),
    stage: (given) =>
      withBundles(opening(), given, async (open, { store }) => {
        const bundles: Bundle[] = []
        for (const [i, one] of given.entries()) if (i === 0 || !isThin(one.path)) bundles.push(await open(one, false))
        await stageSeries({ bundles, config, store })
      }),
    apply: (given, { position, rollback, goesBack, log, beforeCommit }) =>
      withBundles(opening(), given, async (open, { store, trust: signers }) => {
        await applySeries({
          bundles: await seriesOf(given, open, signers),
          config,
          store,
          rollback,
          goesBack,
          now,
          file: ledgerName(position),
          trigger: 'fleet',
          async beforeCommit() {
            if (log !== null) store.changes.adoptLog(log.after, log.rows)
            await beforeCommit()
          },
        })
      }).finally(() => {
        kept?.close()
        kept = null
      }),
    async remember() {
      await rememberState({ dataDir, keep: config.bundle.keep, spared: [], now })
    },
    discard(path) {
      rmSync(path, { force: true })
      rmSync(wholeOf(path), { force: true })
    },
  }
}

function readSnapshots(dataDir: string): Partial<Record<SourceName, string>> {
  const ids = withReads(dataDir, ({ snapshots }) =>
    SOURCES.map((source) => [source, snapshots.readSnapshot(source)?.id] as const),
  )
  return Object.fromEntries((ids ?? []).filter(([, id]) => id !== undefined))
}

/** What a bundle is opened with. Its dates are those of the generation that names it, which were checked: a full bundle may be old. */
interface Opening {
  readonly dataDir: string
  readonly store: Writes
  readonly trust: KeyTrust
}

/** Opens a bundle. `within`: in the transaction that has applied those before it. */
type Open = (one: DownloadedBundle, within: boolean) => Promise<Bundle>

/** Gives a function what opens bundles; they are closed after it. */
async function withBundles(
  opening: Opening,
  given: readonly DownloadedBundle[],
  work: (open: Open, opening: Opening) => Promise<void>,
): Promise<void> {
  const bundles: Bundle[] = []
  const open: Open = async (one, within) => {
    const bundle = await openExpected(one, opening, within)
    bundles.push(bundle)
    return bundle
  }
  try {
    await work(open, opening)
  } catch (error) {
    throw given.some(({ path }) => isThin(path)) ? refuseThin(error) : error
  } finally {
    for (const bundle of bundles) await bundle.close()
  }
}

/** Returns bundles as a series: a thin one is opened when those before it are applied, of whole ones the signatures are verified before. */
async function seriesOf(given: readonly DownloadedBundle[], open: Open, trust: KeyTrust): Promise<SeriesBundle[]> {
  const series: SeriesBundle[] = []
  for (const one of given) {
    const whole = isThin(one.path) ? null : await open(one, false)
    const { manifest, key } = whole ?? judgeThin(one.path, trust)
    series.push({ manifest, key, open: async () => whole ?? open(one, true) })
  }
  return series
}

/** Opens a bundle, of a thin one its whole one, which is made once. */
async function openExpected({ path, digest }: DownloadedBundle, opening: Opening, within: boolean): Promise<Bundle> {
  const whole = isThin(path) ? wholeOf(path) : path
  const isMade = !isThin(path) || existsSync(whole)
  const options = { ...opening, whole, within }
  const bundle = isMade ? await openFiles([whole], opening.trust) : await openThin(path, options)
  if (bundle.manifest.digest === digest) return bundle
  await bundle.close()
  throw refuseGeneration(
    'damaged',
    `the bundle ${path} has the state ${bundle.manifest.digest.slice(0, 12)}, and its generation names ` +
      digest.slice(0, 12),
  )
}

/** Names why a thin bundle cannot be used here. */
function refuseThin(error: unknown): unknown {
  if (!(error instanceof MirrorError) || !['archive', 'bundle'].includes(error.code)) return error
  return refuseGeneration(
    'thin',
    'a thin bundle cannot be used here, so this mirror asks for a whole one, which the next generation has; where no mirror leads any ' +
      `more, "patchmirror fleet rollback" goes on from one that was not thin (${messageOf(error)})`,
    { cause: error },
  )
}
