import { derivedDir } from '../store/database.ts'
import type { PinnedReads, Reads } from '../store/pinned.ts'
import { SOURCES, type SourceName } from '../store/runs.ts'
import { type ArchiveFiles, createArchiveFiles } from './archive.ts'
import { type AnswerCache, createAnswerCache } from './cache.ts'
import { type FeedDocuments, createFeedDocuments } from './documents.ts'
import { type IndexLookup, createListing } from './listing.ts'
import { notReady } from './not-ready.ts'
import { type SnapshotOrigin, readOrigin } from './origin.ts'
import { type OtherIds, createOtherIds } from './other-ids.ts'

/** Reads of one moment, and the snapshots they belong to. */
export type Origins = Pick<ServedSnapshot, 'reads' | 'originOf' | 'knownOrigin'>

/** What is served now: the pinned moment of the store, and everything kept ready from it. */
export interface ServedSnapshot {
  readonly reads: Reads
  readonly cache: AnswerCache
  readonly documents: FeedDocuments
  readonly archives: ArchiveFiles
  readonly listing: IndexLookup
  /** Other forms of the records' ids. */
  readonly otherIds: OtherIds
  /** Throws `not_ready` before the source's first snapshot. */
  originOf(source: SourceName): SnapshotOrigin
  /** The same, or null. */
  knownOrigin(source: SourceName): SnapshotOrigin | null
  /** Moves to the newest snapshots if anything was committed. What changed is dropped, the rest stays warm. */
  refresh(): void
  /** Lets go of the archive; the store's connections belong to whoever opened them. */
  close(): void
}

/** What each source is called in a message. */
export const SOURCE_NAMES: Readonly<Record<SourceName, string>> = {
  osv: 'the OSV feed',
  feeds: 'the patch feed',
  catalog: 'the catalog',
  identity: 'the identity surface',
}

/** `cacheBytes` bounds the answers kept ready; `onArchiveLost` is told when the derived archive is gone. */
export function createServedSnapshot(
  reads: PinnedReads,
  dataDir: string,
  cacheBytes: number,
  onArchiveLost?: () => void,
): ServedSnapshot {
  const cache = createAnswerCache(cacheBytes)
  const archives = createArchiveFiles(derivedDir(dataDir), onArchiveLost)
  const documents = createFeedDocuments(reads.pinned, cache)
  const listing = createListing(reads.pinned)
  const readOtherIds = (): OtherIds => createOtherIds(reads.pinned.listUntidyIds)
  let otherIds = readOtherIds()
  const origins: Record<SourceName, SnapshotOrigin | null> = {
    osv: null,
    feeds: null,
    catalog: null,
    identity: null,
  }

  const load = (): void => {
    for (const source of SOURCES) {
      const before = origins[source]?.version
      origins[source] = readOrigin(reads.pinned, source)
      if (origins[source]?.version === before) continue
      cache.drop(source)
      documents.drop(source)
      if (source !== 'osv') continue
      otherIds = readOtherIds()
      reopen()
    }
  }
  /** At once, while the file is surely there: a later snapshot's publication deletes it. */
  const reopen = (): void => {
    archives.release()
    const info = reads.pinned.readArchive()
    if (info !== null) archives.prepare(info)
  }
  load()

  return {
    reads: reads.pinned,
    cache,
    documents,
    archives,
    listing,
    get otherIds() {
      return otherIds
    },
    originOf(source) {
      const origin = origins[source]
      if (origin === null) throw notReady(reads.pinned, source, SOURCE_NAMES[source])
      return origin
    },
    knownOrigin: (source) => origins[source],
    refresh() {
      if (!reads.refresh()) return
      listing.drop()
      load()
    },
    close: () => archives.release(),
  }
}
