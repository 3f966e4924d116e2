import { jsonType } from '../answers/document-type.ts'
import { MirrorError } from '../../../base/errors.ts'
import { type Frame, type Skipped, replaceAt } from '../../../base/json/envelope.ts'
import { endingOf, frameOf } from '../../../base/json/envelope-learn.ts'
import { valueAt } from '../../../base/json/slices.ts'
import type { CatalogResource } from '../../../base/domain/resources.ts'
import type { CatalogList, CatalogPage } from '../../../store/catalog/lists.ts'
import type { StagedEntry } from '../../../store/catalog/list-staging.ts'
import type { PageSink, WalkedPage } from '../../../upstream/lists/walk.ts'
import type { CatalogContext } from '../context.ts'
import { digestText, entriesOf, withoutSecrets } from './items.ts'
import type { FacetReader } from './facets.ts'

/** Page size that the mirror requests. */
export const LIMIT = 1000

/** State of a walk. */
export interface Walk {
  frame: Frame | null
  count: number
  kept: number
  /** Items on its pages until now. */
  itemCount: number
  /** Digests of the items on its pages until now, by key. */
  seen: Map<string, string>
  /** Unchanged pages whose items were not looked at: where all pages are unchanged, none is. */
  unread: number[]
  /** Skipped items, by page. */
  skipped: Skipped[]
  /** Exact totals on its pages until now; several: the list changed while it was read. */
  totals: Set<number>
  /** Whether stored items were missing in the last reading, but not in the one before it. */
  unsteady: boolean
  /** Ids of items that two pages have. */
  repeated: Set<string>
  /** Whether two pages had an item in the last reading, but not in the one before it: others may have been missed. */
  slid: boolean
}

/** Returns the state of a walk that has not started. */
export function createWalk(frame: Frame | null): Walk {
  return {
    frame,
    count: 0,
    kept: 0,
    itemCount: 0,
    seen: new Map(),
    unread: [],
    skipped: [],
    totals: new Set(),
    unsteady: false,
    repeated: new Set(),
    slid: false,
  }
}

/** A list to be walked into the staging tables. */
interface StagedList {
  resource: CatalogResource
  facets: FacetReader
  path: string
  canonical: string
}

/**
 * Creates the sink that stages pages as they are received; never within another source's transaction, which may be
 * rolled back.
 */
export function createSink(
  context: CatalogContext,
  { resource, facets, path, canonical }: StagedList,
  pages: readonly CatalogPage[],
  walk: Walk,
  { known, stored }: { known: Frame | null; stored: CatalogList | null },
): PageSink {
  const { store } = context
  const staging = store.catalog.staging
  return {
    begin() {
      walk.unread = []
      walk.seen.clear()
      walk.count = 0
      walk.kept = 0
      walk.itemCount = 0
      walk.skipped = []
      walk.totals.clear()
      walk.unsteady = false
      walk.repeated.clear()
      walk.slid = false
      return store.exclusive(() => staging.dropWalk(canonical))
    },
    kept(number) {
      const page = pages[number]
      if (page === undefined) throw new MirrorError('internal', `${path}: page ${number} is not stored`)
      walk.unread.push(number)
      if (walk.count > walk.kept) readKept(context, walk, stored)
      walk.count++
      walk.kept++
      walk.itemCount += page.entries
      const total = number === 0 && known !== null ? frameTotal(known) : null
      if (total !== null) walk.totals.add(total)
      walk.skipped.push(...(known?.skipped ?? []).filter((one) => one.page === number))
      return store.exclusive(() => staging.keepPage(canonical, page))
    },
    async page(page) {
      if (page.number === 0) walk.frame = plainFrame(resource, path, typedFrame(page))
      if (page.next === null && walk.frame !== null && page.number > 0) walk.frame = lastOf(walk.frame, page)
      readKept(context, walk, stored)
      const { entries, repeated, isRepeat, refused } = entriesOf(resource, facets, page, path, walk.seen)
      for (const id of repeated) walk.repeated.add(id)
      const count = countNew(walk, entries)
      if (refused !== null) walk.skipped.push(refused)
      // The last page may have further items of ids alone, as patches of earlier tickets; any other may be an earlier one again.
      const isLast = page.next === null && refused === null && count > 0
      if (isRepeat && page.number > 0 && !isLast) {
        const why = `page ${page.number + 1} has ids of earlier pages alone, with other content`
        if (count > 0) walk.skipped.push({ page: page.number, count, why })
        return false
      }
      walk.itemCount += count
      walk.count++
      if (page.total !== null) walk.totals.add(page.total)
      context.counted(entries.length)
      await store.exclusive(() => staging.stagePage(canonical, { ...page, entries: entries.length }, entries))
      return true
    },
  }
}

/** Returns the exact total of a list's first page; null when it has none. */
export function frameTotal({ envelope, total: path, estimated }: Frame): number | null {
  const total = path === null ? null : valueAt(envelope, path)
  return typeof total === 'number' && estimated !== true ? total : null
}

/** Maximum size of a frame, characters: every request for the list parses and writes the envelope. */
const MAX_FRAME = 65_536

/**
 * Returns the frame without key material. Throws `upstream_shape` for an envelope that is too large or nested too
 * deep.
 */
/** Returns the frame of a list with the media type of its first page. */
function typedFrame({ value, shape, type }: WalkedPage): Frame {
  const frame = frameOf(value, shape, LIMIT)
  const served = jsonType(type)
  return served === null ? frame : { ...frame, type: served }
}

function plainFrame(resource: CatalogResource, path: string, frame: Frame): Frame {
  let text: string
  try {
    text = JSON.stringify(frame)
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: its envelope is nested too deep`, {
      cause: error,
    })
  }
  if (text.length > MAX_FRAME) {
    const message = `${path}: its envelope, without the items, is larger than ${MAX_FRAME} bytes`
    throw new MirrorError('upstream_shape', message)
  }
  if (!resource.secrets) return frame
  const envelope = withoutSecrets(Buffer.from(JSON.stringify(frame.envelope)), path)
  return { ...frame, envelope: JSON.parse(envelope.toString('utf8')) as unknown }
}

/**
 * Completes the frame from the last page: the final value of the cursor member and of the flags that indicate more
 * pages.
 */
function lastOf(frame: Frame, { value }: WalkedPage): Frame {
  let { envelope } = frame
  for (const path of [...frame.more, ...(frame.ends ?? [])]) envelope = replaceAt(envelope, path, valueAt(value, path))
  return { ...frame, envelope, ending: endingOf(value, frame.cursor) }
}

/** Records the items of the unchanged pages, and those that earlier pages have with other content. */
function readKept({ store }: CatalogContext, walk: Walk, stored: CatalogList | null): void {
  const { unread, seen, repeated } = walk
  const items = stored === null ? [] : unread.flatMap((number) => store.catalog.listOfPage(stored.id, number))
  walk.unread = []
  for (const { id, sha } of items) {
    const digest = digestText(sha)
    if ((seen.get(id) ?? digest) !== digest) repeated.add(id)
    seen.set(id, digest)
  }
}

/** Records the items of a page. Returns how many of them no earlier page has. */
function countNew({ seen }: Walk, entries: readonly StagedEntry[]): number {
  const before = seen.size
  for (const { id, sha } of entries) seen.set(id, digestText(sha))
  return seen.size - before
}
