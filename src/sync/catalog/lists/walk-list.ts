import { sha256Of } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { counted, nounOf } from '../../../base/text.ts'
import type { Frame } from '../../../base/json/envelope.ts'
import { frameOf, withNextOf } from '../../../base/json/envelope-learn.ts'
import { isSamePath } from '../../../base/json/list-names.ts'
import { canonicalPath } from '../../../base/domain/path-templates.ts'
import { type CatalogResource, type Facet, RESOURCES } from '../../../base/domain/resources.ts'
import { type CatalogList, type CatalogPage, isCarried } from '../../../store/catalog/lists.ts'
import { nextLink } from '../../../upstream/lists/page-key.ts'
import { type WalkEnd, type WalkOptions, probeList, walkList } from '../../../upstream/lists/walk.ts'
import type { CatalogContext } from '../context.ts'
import { refuseRemoval, removalLimits } from '../../refusals.ts'
import { isConfirmationDue } from '../answers/due.ts'
import { whyOlder } from '../../older-mirror.ts'
import {
  LASTING,
  type ListEvidence,
  evidenceOf,
  exceedsTotal,
  isMoving,
  lossDoubt,
  markCompleteness,
  parseEvidence,
  totalMismatch,
} from './completeness.ts'
import { idOfItem } from './items.ts'
import { type FacetReader, createFacetReader } from './facets.ts'
import { type Walk, LIMIT, createSink, createWalk } from './staging.ts'
import { refuseCostly } from '../../../base/json/limits.ts'

/** A walked list; its pages are in the staging tables under its path. */
export interface WalkedList {
  /** Canonical path. */
  path: string
  resource: CatalogResource
  /** Number of the stored list; null: not stored yet. */
  stored: number | null
  /** Whether the list differs from the stored one. */
  changed: boolean
  /** Whether its pages have their items at another place than the stored ones had. */
  isOtherForm: boolean
  frame: Frame
  evidence: ListEvidence
  facets: FacetReader
  /** Upstream's date, unix milliseconds. */
  asOf: number
}

/**
 * Walks one list into the staging tables. Pages equal to the stored ones are kept; of the others each item is staged
 * as upstream's bytes. Nothing is removed from a list that is not known to be complete. Throws `upstream_*`.
 */
export async function walkCatalogList(
  context: CatalogContext,
  resource: CatalogResource,
  template: { path: string; facets: readonly Facet[] },
  path: string,
): Promise<WalkedList> {
  const { store } = context
  const canonical = canonicalPath(path) ?? path
  const stored = store.catalog.readList(canonical)
  const names = stored === null ? null : store.catalog.readFieldNames(stored.id)
  const all = stored === null ? [] : store.catalog.listPages(stored.id)
  // Without stored field names the values that the filters compare are read again from all pages.
  const pages = names === null ? [] : all.filter((page) => !isCarried(page))
  const items = itemsResource(resource, template)
  const facets = createFacetReader(template.facets, names ?? [], items.name)
  const known = storedFrame(stored)
  const walk = createWalk(known)
  const target = { resource: items, facets, path, canonical }
  const judged = stored === null ? null : parseEvidence(store.catalog.readEvidence(stored.id))
  const isRead = stored === null || isReadingDue(context, canonical, judged)
  const before = { known, judged, stored, isRead }
  try {
    const end = await walkUntilSteady(context, target, walk, pages, before)
    const entries = all.length > 1 ? (stored?.entries ?? 0) : 0
    const isPaged = all.filter((page) => !isCarried(page)).length > 1
    const lost = stored === null || end.seen === null ? 0 : store.catalog.countGone(stored.id, canonical)
    const readAt = isRead ? context.now() : judged?.readAt
    const found = evidenceOf(walk, end, judged, { entries, isPaged, lost })
    const kept = keptLoss(context, target, walk, end, { judged, stored, lost })
    const evidence = { ...found, ...kept, ...(readAt !== undefined && { readAt }) }
    let frame = await learnedFrame(context, target, walk, end, known)
    const same = walk.kept === walk.count && walk.count === pages.length
    frame =
      same && known !== null && end.seen === null
        ? { ...known, ...frame }
        : markCompleteness(frame, walk, end, evidence)
    const carried = all.find(isCarried) ?? null
    const carries = frame.partial !== undefined && (kept !== null || !exceedsTotal(walk, end))
    if (carries && stored !== null) await carryOver(context, target, stored, walk, same ? carried : null)
    // What two pages contradict is no property of either: the next run reads all of them.
    if (isMoving(walk)) await store.exclusive(() => store.catalog.staging.forgetPages(canonical))
    const isSameState = isSame(known, frame)
    const changed = !same || !isSameState || (carried !== null && !carries)
    facets.settle(walk.kept > 0 || carries)
    const { asOf } = end
    const isOtherForm = known !== null && !isSamePath(known.items, frame.items)
    const list = { path: canonical, resource, stored: stored?.id ?? null, isOtherForm }
    return { ...list, changed, frame, evidence, facets, asOf }
  } catch (error) {
    await store.exclusive(() => store.catalog.staging.dropWalk(canonical))
    throw error
  }
}

/** Returns what says that the items that a walk lacks are kept; null: they are not, as where the sync before lacked the same. */
function keptLoss(
  context: CatalogContext,
  { resource, canonical }: Target,
  walk: Walk,
  end: WalkEnd,
  { judged, stored, lost }: Pick<Stored, 'judged' | 'stored'> & { lost: number },
): Pick<ListEvidence, 'grade' | 'why' | 'lacked'> | null {
  if (stored === null || walk.frame === null || lost === 0) return null
  const { entries } = stored
  const limits = removalLimits(context.config)
  if (lost > limits.count && refuseRemoval(entries, lost, limits, 'items') !== null) return null // a person decides on it
  const isOtherForm = !isSamePath(walk.frame.items, storedFrame(stored)?.items ?? null)
  const doubt = lossDoubt(walk, end, { entries, lost, isLasting: LASTING.has(resource.name) && !isOtherForm })
  if (doubt === null) return null
  const lacked = sha256Of([...context.store.catalog.eachGone(stored.id, canonical)].sort().join('\n')).toString('hex')
  if (judged?.lacked === lacked && context.kind !== 'refresh') return null
  const kept = `${counted(lost, 'stored item')} that it lacks ${nounOf(lost, 'stays', 'stay')}`
  return { grade: 'cut', why: `${doubt}; ${kept} until the next sync finds the same`, lacked }
}

/** Returns the resource of a list's items: those of an image's own list are tags, with their ids and fields. */
function itemsResource(resource: CatalogResource, template: { path: string }): CatalogResource {
  if (template.path !== resource.sublist?.path) return resource
  return RESOURCES.find(({ name }) => name === 'tags') ?? resource
}

type Target = Parameters<typeof createSink>[1]

/** What is stored of a list. */
interface Stored {
  known: Frame | null
  judged: ListEvidence | null
  stored: CatalogList | null
  /** Whether its pages are asked for without their validators, which a service may reuse. */
  isRead: boolean
}

/** Returns whether the pages of a list are to be read again, whatever their ETags say; not by a refresh, which is to be quick. */
function isReadingDue(context: CatalogContext, path: string, judged: ListEvidence | null): boolean {
  if (context.full) return true
  return context.kind !== 'refresh' && isConfirmationDue(context, { path, confirmedAt: judged?.readAt ?? null })
}

/** Returns whether a list is served as before, but for its items. */
function isSame(known: Frame | null, frame: Frame): boolean {
  if (known === null || known.learned !== frame.learned) return false
  return known.partial === frame.partial && known.unproved === frame.unproved
}

/** Readings of a list that changes while it is read, at most; one whose numbers disagree is read twice. */
const MAX_READINGS = 3

/**
 * Walks a list, and again when its counts disagree, two pages have one item, or stored items are missing: an item that
 * moved to an already read page during the walk is missing too, and so is one that the server which answered has not got.
 * An item is gone when two successive readings lack it.
 */
async function walkUntilSteady(
  context: CatalogContext,
  target: Target,
  walk: Walk,
  pages: readonly CatalogPage[],
  before: Stored,
): Promise<WalkEnd> {
  const { resource, path } = target
  const options = walkOptions(context, resource, pages, before)
  const sink = createSink(context, target, pages, walk, before)
  const session = context.sessionOf(resource.surface)
  let gone = new Set<string>()
  let repeated = new Set<string>()
  for (let readings = 1; ; readings++) {
    // Which of two pages has an item is seen where both are read.
    const read = repeated.size > 0 ? { ...options, stored: () => null } : options
    const asked = gone.size > 0 ? { ...read, known: withoutNumber(read.known) } : read
    const end = await walkList(session, context.relative(resource, path), asked, sink)
    const agrees = totalMismatch(walk, end) === null
    const isCut = end.cut !== null && agrees && walk.repeated.size === 0
    if (isCut || (walk.kept === walk.count && walk.repeated.size === 0)) return end
    const missing = goneIn(context, target, before.stored)
    walk.unsteady = !isWithin(missing, gone)
    walk.slid = !isWithin(walk.repeated, repeated)
    gone = missing
    repeated = new Set(walk.repeated)
    if (agrees && !isMoving(walk)) return end
    if (readings >= (isMoving(walk) ? MAX_READINGS : 2)) return end
  }
}

/** Forgets from which number pages are counted: a service that counts from 0 and no more from 1 skips its second page. */
function withoutNumber(known: WalkOptions['known']): WalkOptions['known'] {
  return known.onward?.firstPage === undefined ? known : { ...known, onward: null }
}

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return [...some].every((id) => all.has(id))
}

/** Returns the ids of the stored items that a walk did not find. */
function goneIn({ store }: CatalogContext, { canonical }: Target, stored: CatalogList | null): Set<string> {
  return new Set(stored === null ? [] : store.catalog.eachGone(stored.id, canonical))
}

/** Pages after which a list counts as endless: they have up to 1,000 items each, which is enough for any account. */
const MAX_LIST_PAGES = 10_000
/** Time after which a list counts as endless, milliseconds: the other lists of the run wait for it. */
const LIST_TIMEOUT_MS = 900_000

function walkOptions(
  context: CatalogContext,
  resource: CatalogResource,
  pages: readonly CatalogPage[],
  { known, judged, stored, isRead }: Stored,
): WalkOptions {
  const { upstream, catalog } = context.config
  return {
    limit: LIMIT,
    maxBytes: upstream.maxJsonBytes,
    bounds: {
      timeoutMs: LIST_TIMEOUT_MS,
      bytes: catalog.maxListBytes,
      pages: context.limits.listPages ?? MAX_LIST_PAGES,
    },
    stored(number: number) {
      const page = context.full ? null : (pages[number] ?? null)
      return page === null || !isRead ? page : { ...page, etag: null, lastModified: null }
    },
    refuse: (body, meta) => refuseCostly(body) ?? whyOlder(context, meta),
    idOf: (item) => idOfItem(resource, item),
    known: {
      items: stored?.entries ?? null,
      onward: known?.onward ?? null,
      cursorPath: known?.cursor ?? null,
      cut: known?.cut === true ? (known.partial ?? null) : null,
      probed: judged?.probed ?? null,
      graded: judged !== null,
      endInPage: judged?.endInPage === true && judged.lacked === undefined,
      statesNothing: judged?.statesNothing ?? null,
    },
    now: () => performance.now(), // by elapsed time: a clock that is set does not end a walk
  }
}

/** Returns the frame of a walked list, with the learned way to request its next page. */
async function learnedFrame(
  context: CatalogContext,
  { resource, path }: Target,
  walk: Walk,
  end: WalkEnd,
  stored: Frame | null,
): Promise<Frame> {
  const { frame } = walk
  if (frame === null) throw new MirrorError('internal', `${path} was walked, but returned no page`)
  const isPlain = Object.values(end.onward).every((value) => value === null || value === false)
  const { header, byId, silent } = end.onward
  const learned = frame.learned || header || byId || silent || end.onward.headerName !== undefined
  const known = {
    ...withoutGuess(frame, learned),
    learned,
    ...(!isPlain && { onward: end.onward }),
  }
  if (learned || walk.itemCount < 2) return known
  if (stored?.learned === true && isSamePath(stored.items, frame.items))
    return stored.cursor === null
      ? { ...withoutGuess(known, true), learned: true }
      : { ...withNextOf(known, stored), learned: true }
  return probe(context, resource, path, known, end.one)
}

/** Keeps stored items that the walk of an incomplete list did not contain, after the pages of the walk. */
async function carryOver(
  { store }: CatalogContext,
  { canonical }: Target,
  stored: CatalogList,
  walk: Walk,
  carried: CatalogPage | null,
): Promise<void> {
  const { staging } = store.catalog
  await store.exclusive(() => {
    if (carried !== null) staging.keepPage(canonical, carried)
    else store.catalog.carryEntries(stored.id, canonical, walk.count)
  })
}

function storedFrame(stored: CatalogList | null): Frame | null {
  return stored === null ? null : (JSON.parse(stored.frame) as Frame)
}

/**
 * Returns whether it is still unknown how a stored list names its next page, because upstream failed when it was
 * probed.
 */
export function isUnlearned(stored: CatalogList): boolean {
  return stored.entries > 1 && storedFrame(stored)?.learned === false
}

/**
 * Requests a page of one item: a list of one page does not show how it names the next page, and the mirror needs this
 * to serve its own clients pages of any size.
 */
async function probe(
  context: CatalogContext,
  resource: CatalogResource,
  path: string,
  frame: Frame,
  one: WalkEnd['one'],
): Promise<Frame> {
  const { maxJsonBytes: maxBytes } = context.config.upstream
  const session = context.sessionOf(resource.surface)
  const options = { maxBytes, refuse: refuseCostly }
  const page =
    one === undefined ? await probeList(session, context.relative(resource, path), options) : (one ?? 'refused')
  if (page === 'later') return frame
  if (page === 'refused') return { ...frame, learned: true }
  const probed = frameOf(page.value, page.shape, 1)
  const header = nextLink(page.link) !== null
  const silent = page.items.length === 1 && !header && page.shape.more === null
  const headerName = page.headerNext?.header
  const named = headerName === undefined ? {} : { headerName }
  const onward = { param: null, byId: false, ...frame.onward, header, silent, ...named }
  const isPlain = !header && !silent && headerName === undefined && frame.onward === undefined
  const plain = withoutGuess(frame, page.items.length === 1)
  const known = { ...plain, ...(!isPlain && { onward }), learned: true }
  return probed.learned ? withNextOf(known, probed) : known
}

/**
 * Drops the guessed position of the cursor in a cursor object, when a page that is not the last has no cursor there.
 */
function withoutGuess(frame: Frame, isRefuted: boolean): Frame {
  const isGuess = !frame.learned && frame.ending === 'absent'
  return isGuess && isRefuted ? { ...frame, cursor: null } : frame
}
