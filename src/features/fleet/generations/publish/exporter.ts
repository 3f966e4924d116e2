import { createReadStream, rmSync } from 'node:fs'
import { join } from 'node:path'
import { digestOfChunks } from '../../../../base/digest.ts'
import type { Config } from '../../../../config/schema.ts'
import { SOURCES, type SourceName } from '../../../../base/domain/sources.ts'
import { exportBundle } from '../../../bundles/export/export.ts'
import { type PublishedState, readPublishedState } from '../../../bundles/export/published-state.ts'
import { rememberState } from '../../../bundles/export/record-state.ts'
import type { SigningKey } from '../../../bundles/format/keys.ts'
import type { Manifest } from '../../../bundles/format/manifest.ts'
import type { AdoptedRow } from '../../../../store/changes/log-adoption.ts'
import type { LoggedSnapshot } from '../../../../store/changes/log.ts'
import { type Reads, withReads } from '../../../../store/reads.ts'
import type { Generation } from '../format/generation.ts'
import type { ObjectBody } from '../../objects/object-store.ts'
import { isRollingBack } from '../rollback-state.ts'
import { type StoredPosition, createStoredPosition, fleetFolder, recordPublished } from '../position.ts'

/** A bundle that was written to a file. */
export interface ExportedFile {
  readonly body: ObjectBody
  readonly size: number
  readonly sha256: string
  readonly manifest: Pick<Manifest, 'mirror' | 'sequence' | 'digest' | 'sources' | 'createdAt' | 'expiresAt'>
}

/** What a mirror publishes. */
export type OwnState = Pick<PublishedState, 'mirror' | 'asOf' | 'withheldAt' | 'snapshots' | 'contentDigest'>

/** The snapshot of each source. */
type SnapshotIds = Partial<Record<SourceName, { readonly snapshot: string }>>

/** The mirror's own state, as a publisher sees it. */
export interface Exporter extends StoredPosition {
  /** Null: nothing is mirrored yet. */
  readState(): OwnState | null
  /** Returns the sequence of a state on which a delta can build, by its combined digest; null: none. */
  findBase(digest: string): number | null
  /** Whether the stored data developed from the content of a generation. */
  knows(sources: Generation['sources']): boolean
  /**
   * Writes a bundle; `since`: the sequence of its base, null: a full one. `spared`: sequences that stay bases. `thin`: as what
   * exactly its base lacks.
   */
  exportFile(since: number | null, spared: readonly number[], thin?: boolean): Promise<ExportedFile>
  /** The rows of the change log behind `after` that led to these sources. */
  readRows(after: number, sources: SnapshotIds): AdoptedRow[]
  /** Makes the published state one on which later deltas can build. */
  remember(spared: readonly number[]): Promise<void>
  /** Stores the object of a generation that was published. */
  recordPublished(object: Buffer): void
  /** Whether a rollback has begun that is not published. */
  isRollingBack(): boolean
  /** Removes an exported file. */
  discard(file: ExportedFile): void
}

/** What a mirror exports with. */
interface ExporterDeps {
  readonly dataDir: string
  readonly config: Pick<Config, 'bundle' | 'catalog'>
  readonly keys: readonly SigningKey[]
  readonly program: string
  readonly now: () => number
}

/** Creates the exporter of a data folder. */
export function createExporter({ dataDir, config, keys, program, now }: ExporterDeps): Exporter {
  const { keep, expireDays } = config.bundle
  return {
    readState: () => readPublishedState(dataDir),
    findBase: (digest) =>
      withReads(dataDir, ({ ledger }) => {
        const found = ledger.findExport(digest)
        return found?.kept === true ? found.sequence : null
      }),
    knows: (sources) => withReads(dataDir, (reads) => hasAll(reads, sources)) ?? false,
    async exportFile(since, spared, thin = false) {
      const path = join(fleetFolder(dataDir), since === null ? 'full.zip' : 'delta.zip')
      const { manifest, bytes } = await exportBundle({
        dataDir,
        path,
        keys,
        trustRoot: config.catalog.trustRoot,
        program,
        now,
        keep,
        expireDays,
        spared,
        sources: null,
        since: since === null ? null : String(since),
        thin,
        need: null,
        split: null,
        force: true,
        onProgress: () => undefined,
      })
      const sha256 = await digestOfChunks(createReadStream(path))
      return { body: { file: path, size: bytes, sha256 }, size: bytes, sha256, manifest }
    },
    readRows: (after, sources) => withReads(dataDir, (reads) => rowsLeadingTo(reads, after, sources)) ?? [],
    remember: async (spared) => {
      await rememberState({ dataDir, keep, spared, now })
    },
    ...createStoredPosition(dataDir),
    recordPublished: (object) => recordPublished(dataDir, object),
    isRollingBack: () => isRollingBack(dataDir),
    discard({ body }) {
      if ('file' in body) rmSync(body.file, { force: true })
    },
  }
}

function hasAll({ changes, snapshots }: Reads, sources: Generation['sources']): boolean {
  return Object.entries(sources).every(
    ([name, { snapshot }]) =>
      snapshots.readSnapshot(name as SourceName)?.id === snapshot ||
      changes.findInLog(snapshot).some(({ source }) => source === name),
  )
}

/** Rows read at once. */
const PAGE = 500

/** Returns the longest run of rows behind `after` at whose end each source has the snapshot of the generation. */
function rowsLeadingTo({ changes }: Reads, after: number, sources: SnapshotIds): AdoptedRow[] {
  const rows: LoggedSnapshot[] = []
  for (let at = after; ;) {
    const page = changes.listLogged(at, PAGE)
    rows.push(...page)
    if (page.length < PAGE) break
    at = page.at(-1)?.id ?? at
  }
  const latest = new Map<SourceName, string>()
  let end = 0
  for (const [i, { source, snapshot }] of rows.entries()) {
    latest.set(source, snapshot)
    const fits = SOURCES.every((name) => !latest.has(name) || latest.get(name) === sources[name]?.snapshot)
    if (fits) end = i + 1
  }
  return rows.slice(0, end).map((row) => ({ ...row, names: namesOf(changes, row) }))
}

function namesOf(changes: Reads['changes'], { id, complete }: LoggedSnapshot): AdoptedRow['names'] {
  if (!complete) return []
  return changes.listNames(id, -1).map(({ name, change }) => [name, change])
}
