import { rmSync } from 'node:fs'
import type { Config } from '../../../../config/schema.ts'
import { SOURCES, type SourceName } from '../../../../base/domain/sources.ts'
import { rememberState } from '../../../bundles/export/record-state.ts'
import type { KeyTrust } from '../../../bundles/format/keys.ts'
import { type Bundle, openFiles } from '../../../bundles/import/open.ts'
import { applySeries, stageSeries } from '../../../bundles/import/series.ts'
import { openReader } from '../../../../store/database/open.ts'
import { createSnapshotReader } from '../../../../store/runs/snapshots.ts'
import { type Writes, openWrites } from '../../../../store/writes.ts'
import type { LogPart } from './log-part.ts'
import { refuseGeneration } from '../format/refusals.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { type Position, type StoredPosition, createStoredPosition, ledgerName } from '../position.ts'
import { type ChosenBundle, type DownloadedBundle, downloadBundles } from './bundles.ts'

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
  /** Verifies bundles and does all that can be done while the old state is served. */
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
  const withBundles = async <T>(
    given: readonly DownloadedBundle[],
    work: (bundles: Bundle[], store: Writes) => Promise<T>,
  ): Promise<T> => {
    const bundles: Bundle[] = []
    try {
      for (const one of given) bundles.push(await openExpected(one, trust))
      return await work(bundles, opened())
    } finally {
      for (const bundle of bundles) await bundle.close()
    }
  }
  return {
    ...createStoredPosition(dataDir),
    readSnapshots: () => readSnapshots(dataDir),
    readDigests() {
      const { listStoredSources, known } = opened().carried
      return Object.fromEntries(listStoredSources().map((source) => [source, known.digestOf(source)]))
    },
    download: (store, chosen) => downloadBundles(store, dataDir, chosen),
    stage: (given) => withBundles(given, (bundles, store) => stageSeries({ bundles, config, store })),
    apply: (given, { position, rollback, goesBack, log, beforeCommit }) =>
      withBundles(given, (bundles, store) =>
        applySeries({
          bundles,
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
        }),
      ).finally(() => {
        kept?.close()
        kept = null
      }),
    async remember() {
      await rememberState({ dataDir, keep: config.bundle.keep, spared: [], now })
    },
    discard: (path) => rmSync(path, { force: true }),
  }
}

function readSnapshots(dataDir: string): Partial<Record<SourceName, string>> {
  const db = openReader(dataDir)
  if (db === null) return {}
  try {
    const reader = createSnapshotReader(db)
    const ids = SOURCES.map((source) => [source, reader.readSnapshot(source)?.id] as const)
    return Object.fromEntries(ids.filter(([, id]) => id !== undefined))
  } finally {
    db.close()
  }
}

/** Opens a bundle. Its dates are those of the generation that names it, which were checked: a full bundle may be old. */
async function openExpected({ path, digest }: DownloadedBundle, trust: KeyTrust): Promise<Bundle> {
  const bundle = await openFiles([path], { ...trust, now: null })
  if (bundle.manifest.digest === digest) return bundle
  await bundle.close()
  throw refuseGeneration(
    'damaged',
    `the bundle ${path} has the state ${bundle.manifest.digest.slice(0, 12)}, and its generation names ` +
      digest.slice(0, 12),
  )
}
