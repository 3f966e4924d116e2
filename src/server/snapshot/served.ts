import type { Steps } from '../../base/pacing.ts'
import type { Config } from '../../config/schema.ts'
import { SOURCES, type SourceName } from '../../base/domain/sources.ts'
import { derivedDir } from '../../store/database/open.ts'
import type { PinnedReads, Reads } from '../../store/reads.ts'
import { contentInPool } from '../../store/database/gzip.ts'
import { type FormEntry, readIndexForm } from '../../base/json/forms/index-forms.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { elementsInSteps, elementsOf, membersOf, sliceText } from '../../base/json/slices.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import type { SnapshotOrigin } from '../http/origin.ts'
import type { ServerLog } from '../http/problems.ts'
import { createAnswerCache } from '../http/response-cache.ts'
import { createArchiveFiles } from '../http/send-file.ts'
import { createFeedDocuments } from './documents.ts'
import { notReady } from './not-ready.ts'
import { type OtherIds, createOtherIds } from './other-ids.ts'
import { type StaleRule, createAgedOrigins, refuseStale } from './stale.ts'
import { STEP, inSteps } from './steps.ts'

/** Reads of one snapshot, and the origins of its sources. */
export type Origins = Pick<ServedSnapshot, 'reads' | 'originOf' | 'knownOrigin'>

/** The served snapshot: the pinned state of the store, and everything cached from it. */
export type ServedSnapshot = ReturnType<typeof createServedSnapshot>

/** What each source is called in a message. */
export const SOURCE_NAMES: Readonly<Record<SourceName, string>> = {
  osv: 'the OSV feed',
  feeds: 'the patch feed',
  catalog: 'the catalog',
  identity: 'the identity surface',
}

interface ServedOptions {
  readonly reads: PinnedReads
  readonly dataDir: string
  readonly config: { readonly server: Pick<Config['server'], 'cacheBytes'> }
  /** Called when the derived archive is missing. */
  readonly onArchiveLost?: () => void
}

/** Creates the served snapshot. Ages are compared when `refresh` is called, each second, never while answering. */
export function createServedSnapshot(options: ServedOptions, markStale: StaleRule) {
  const { reads, dataDir, config, onArchiveLost } = options
  const cache = createAnswerCache(config.server.cacheBytes)
  const archives = createArchiveFiles(derivedDir(dataDir), onArchiveLost)
  const documents = createFeedDocuments(reads.pinned, cache)
  const listing = createListing(reads.pinned)
  const readOtherIds = (): OtherIds => createOtherIds(reads.pinned.osv.listUntidyIds)
  let otherIds = readOtherIds()
  const origins = createAgedOrigins(reads.pinned, markStale)

  const load = (): void => {
    for (const source of SOURCES) {
      if (!origins.read(source)) continue
      cache.drop(source)
      documents.drop(source)
      if (source !== 'osv') continue
      otherIds = readOtherIds()
      reopen()
    }
    origins.judge()
  }
  /** At once, while the file is surely there: a later snapshot's publication deletes it. */
  const reopen = (): void => {
    archives.release()
    const info = reads.pinned.osv.readArchive()
    if (info !== null) archives.prepare(info)
  }
  load()

  return {
    reads: reads.pinned,
    /** Where newer states are kept back: what is served. */
    servedPin: reads.servedPin,
    cache,
    documents,
    archives,
    listing,
    /** Other forms of the records' ids. */
    get otherIds(): OtherIds {
      return otherIds
    },
    /** Throws `not_ready` before the source's first snapshot, `stale` when it is too old to be served. */
    originOf(source: SourceName): SnapshotOrigin {
      const origin = origins.known(source)
      if (origin === null) throw notReady(reads.pinned, source, SOURCE_NAMES[source])
      return refuseStale(origin)
    },
    /** The same, whatever its age, or null. */
    knownOrigin: origins.known,
    /** Marks the origin of something made from a source, such as views, when it is too old. */
    markStale,
    /** Moves to the newest snapshots if anything was committed. What changed is dropped, the rest stays warm. */
    refresh(): void {
      origins.judge() // first: also when the store cannot be read
      if (!reads.refresh()) return
      listing.drop()
      load()
    },
    /** Closes the archive; the store's connections are closed by their owner. */
    close: (): void => archives.release(),
  }
}

const POLL_MS = 1_000

/** Keeps looking for new snapshots until it is stopped. */
export interface SnapshotWatcher {
  /** Moves to the newest snapshot now; a fault of the store is logged, and the next check tries again. */
  readonly look: () => void
  readonly stop: () => void
}

/** Keeps the served snapshot at the newest one: another process may have committed, such as `patchmirror sync`. */
export function followStore(
  served: Pick<ServedSnapshot, 'refresh'>,
  log: Pick<ServerLog, 'info' | 'error'> | null,
  noted: (error: unknown) => boolean = () => false,
): SnapshotWatcher {
  let failing = false
  const look = (): void => {
    try {
      served.refresh()
      if (failing) log?.info({}, 'the database can be read again')
      failing = false
    } catch (error) {
      if (noted(error)) return // its cause is in the log, and its end will be
      if (!failing) log?.error({ err: error }, 'cannot look for new snapshots; the old ones serve on')
      failing = true
    }
  }
  const timer = setInterval(look, POLL_MS).unref()
  return { look, stop: () => clearInterval(timer) }
}

/**
 * Looks ids up in the stored index: shows whether a record that cannot be found should exist. While the store has as many records around an id as the archive has there, what is not stored is not listed: the index is
 * read only where that is not so, once, beside the serving thread and in short stretches.
 */
function createListing(reads: Reads) {
  let lost: Promise<ReadonlySet<string>> | null = null
  const lists = async (id: string): Promise<boolean> => {
    if (reads.osv.readEntry(id) !== null || isSound(reads, id)) return false
    const mine = (lost ??= readLost(reads))
    const ids = await mine
    return lost === mine ? ids.has(id) : lists(id) // another snapshot is served by now
  }
  return {
    /** Rejects when the served index cannot be read. Always false while the snapshot is not whole. */
    lists,
    /** Discards what was read: another snapshot is served. */
    drop(): void {
      lost = null
    },
  }
}

/** Reports whether the stored records around this id are complete, so the index need not be read. */
function isSound(reads: Reads, id: string): boolean {
  const snapshot = reads.snapshots.readSnapshot('osv')
  if (snapshot?.whole !== true) return true
  return reads.osv.isPartStored(id) ?? reads.osv.countRecords() === snapshot.records
}

async function readLost(reads: Reads): Promise<ReadonlySet<string>> {
  const index = reads.feeds.readDocument(OSV_INDEX)
  if (index === null || index.body === null) return new Set()
  const text = await contentInPool(index.body, index.size)
  const entries = otherForm(text)
  if (entries === null) return inSteps(lostIn(reads, text))
  return new Set(entries.map(({ id }) => id).filter((id) => reads.osv.readEntry(id) === null))
}

/** Returns the entries of an index that is no list of objects with an id; null: it is one, as nearly always. */
function otherForm(text: Buffer): readonly FormEntry[] | null {
  const [first] = elementsOf(text, 0)
  if (first !== undefined && idOf(text, first.start) !== null) return null
  const read = readIndexForm(jsonTextOf(text))
  return read === null || 'refused' in read ? null : read.entries
}

function* lostIn(reads: Reads, text: Buffer): Steps<ReadonlySet<string>> {
  const lost = new Set<string>()
  let count = 0
  for (const entry of elementsInSteps(text, 0)) {
    if (++count % STEP === 0) yield
    if (entry === undefined) continue
    const id = idOf(text, entry.start)
    if (id !== null && reads.osv.readEntry(id) === null) lost.add(id)
  }
  return lost
}

/** The id of an entry of the index; of members that repeat the name the last counts, as for a parser. */
function idOf(text: Buffer, at: number): string | null {
  let id: unknown = null
  for (const { name, value } of membersOf(text, at)) if (name === 'id') id = JSON.parse(sliceText(text, value))
  return typeof id === 'string' ? id : null
}
