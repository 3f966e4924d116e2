import { MirrorError } from '../../../core/errors.ts'
import type { Frame } from '../../../json/envelope.ts'
import { frameOf, withNextOf } from '../../../json/envelope-learn.ts'
import { isSamePath } from '../../../json/list-names.ts'
import { canonicalPath } from '../../../domain/path-templates.ts'
import type { Facet, CatalogResource } from '../../../domain/resources.ts'
import { type CatalogList, type CatalogPage, isCarried } from '../../../store/catalog/lists.ts'
import { nextLink } from '../../../upstream/lists/page-key.ts'
import {
  type WalkEnd,
  type WalkOptions,
  probeList,
  walkList,
} from '../../../upstream/lists/walk.ts'
import type { CatalogContext } from '../context.ts'
import { mayBePart, isOverfull, judged, unlikeTotal } from './completeness.ts'
import { idOfItem } from './items.ts'
import { type FacetReader, createFacetReader } from './facets.ts'
import { type Walk, LIMIT, createSink, newWalk } from './staging.ts'
import { refuseCostly } from '../../../json/limits.ts'

/** A list that was walked; its pages wait in the staging tables under its path. */
export interface WalkedList {
  /** Canonical. */
  path: string
  resource: CatalogResource
  /** Number of the list as it is held; null: not held yet. */
  held: number | null
  /** Whether anything in it is not as it is held. */
  changed: boolean
  frame: Frame
  facets: FacetReader
  /** Upstream's date, unix milliseconds. */
  asOf: number
}

/**
 * Walks one list into the staging tables. Pages that are as they are held stay where they are; of the others each item
 * is kept as upstream's bytes. Of a list that is not known to be whole nothing is removed. Throws `upstream_*`.
 */
export async function walkCatalogList(
  context: CatalogContext,
  resource: CatalogResource,
  template: { path: string; facets: readonly Facet[] },
  path: string,
): Promise<WalkedList> {
  const { store } = context
  const canonical = canonicalPath(path) ?? path
  const held = store.readCatalogList(canonical)
  const names = held === null ? null : store.readFieldNames(held.id)
  const all = held === null ? [] : store.listCatalogPages(held.id)
  // Of a list whose field names were never learned, what its filters compare is to be read again.
  const pages = names === null ? [] : all.filter((page) => !isCarried(page))
  const facets = createFacetReader(template.facets, names ?? [])
  const known = storedFrame(held)
  const walk = newWalk(known)
  const target = { resource, facets, path, canonical }
  try {
    let end = await walkTwice(context, target, walk, pages, known)
    let frame = await learnedFrame(context, target, walk, end, known)
    if (mayBePart(walk, end, frame) && known?.onward?.silent !== true) {
      end = await walkTwice(context, target, walk, [], frame)
      frame = await learnedFrame(context, target, walk, end, known)
    }
    const same = walk.kept === walk.count && walk.count === pages.length
    frame = same && known !== null ? { ...known, ...frame } : judged(frame, walk, end)
    const carried = all.find(isCarried) ?? null
    const carries = frame.partial !== undefined && !isOverfull(walk, end)
    if (carries && held !== null)
      await carryOver(context, target, held, walk, same ? carried : null)
    const told = known?.learned === frame.learned && known.partial === frame.partial
    const changed = !same || !told || (carried !== null && !carries)
    facets.settle(walk.kept > 0 || carries)
    const { asOf } = end
    return { path: canonical, resource, held: held?.id ?? null, changed, frame, facets, asOf }
  } catch (error) {
    await store.exclusive(() => store.catalogStaging.dropWalk(canonical))
    throw error
  }
}

type Target = Parameters<typeof createSink>[1]

/** Walks a list, and once more when its numbers do not agree: an item that moved to a page that was read already is on none. */
async function walkTwice(
  context: CatalogContext,
  target: Target,
  walk: Walk,
  pages: readonly CatalogPage[],
  known: Frame | null,
): Promise<WalkEnd> {
  const { resource, path } = target
  const options = walkOptions(context, resource, pages, known)
  const sink = createSink(context, target, pages, walk, known)
  const session = context.sessionOf(resource.surface)
  const walkOnce = (): Promise<WalkEnd> =>
    walkList(session, context.relative(resource, path), options, sink)
  const end = await walkOnce()
  const agrees = end.cut !== null || unlikeTotal(walk, end) === null
  return agrees || walk.kept === walk.count ? end : walkOnce()
}

function walkOptions(
  context: CatalogContext,
  resource: CatalogResource,
  pages: readonly CatalogPage[],
  known: Frame | null,
): WalkOptions {
  const { upstream, catalog } = context.config
  const { listTimeoutMs: timeoutMs, maxListBytes: bytes, maxListPages } = catalog
  return {
    limit: LIMIT,
    maxBytes: upstream.maxJsonBytes,
    bounds: { timeoutMs, bytes, pages: maxListPages },
    held: (number: number) => (context.full ? null : (pages[number] ?? null)),
    refuse: refuseCostly,
    idOf: (item) => idOfItem(resource, item),
    known: {
      onward: known?.onward ?? null,
      cursorPath: known?.cursor ?? null,
      cut: known?.cut === true ? (known.partial ?? null) : null,
      looked: known?.learned ?? false,
    },
    now: context.now,
  }
}

/** The frame of a list that was walked, with what was found out of how it goes on. */
async function learnedFrame(
  context: CatalogContext,
  { resource, path }: Target,
  walk: Walk,
  end: WalkEnd,
  held: Frame | null,
): Promise<Frame> {
  const { frame } = walk
  if (frame === null) throw new MirrorError('internal', `${path} was walked without a page`)
  const isPlain = Object.values(end.onward).every((value) => value === null || value === false)
  const { header, byId, silent } = end.onward
  const learned = frame.learned || header || byId || silent
  const known = {
    ...withoutGuess(frame, learned),
    learned,
    ...(!isPlain && { onward: end.onward }),
  }
  if (learned || walk.met < 2) return known
  const isKnown = held?.learned === true && held.cursor !== null
  if (isKnown && isSamePath(held.items, frame.items))
    return { ...withNextOf(known, held), learned: true }
  return probe(context, resource, path, known)
}

/** What a list that is not whole holds and a walk did not meet stays, behind the pages of the walk. */
async function carryOver(
  { store }: CatalogContext,
  { canonical }: Target,
  held: CatalogList,
  walk: Walk,
  carried: CatalogPage | null,
): Promise<void> {
  const { catalogStaging: staging } = store
  await store.exclusive(() => {
    if (carried !== null) staging.keepPage(canonical, carried)
    else store.carryEntries(held.id, canonical, walk.count)
  })
}

function storedFrame(held: CatalogList | null): Frame | null {
  return held === null ? null : (JSON.parse(held.frame) as Frame)
}

/** Whether a list that is held is still to be looked at for how it names its next page: upstream failed when it was asked. */
export function isUnlearned(held: CatalogList): boolean {
  return held.entries > 1 && storedFrame(held)?.learned === false
}

/**
 * A list that fits on one page does not show how it names the next one. A page of one item does, and the mirror needs to
 * know to give its own clients pages of any size.
 */
async function probe(
  context: CatalogContext,
  resource: CatalogResource,
  path: string,
  frame: Frame,
): Promise<Frame> {
  const { maxJsonBytes: maxBytes } = context.config.upstream
  const session = context.sessionOf(resource.surface)
  const options = { maxBytes, refuse: refuseCostly }
  const page = await probeList(session, context.relative(resource, path), options)
  if (page === 'later') return frame
  if (page === 'refused') return { ...frame, learned: true }
  const probed = frameOf(page.value, page.shape, 1)
  const header = nextLink(page.link) !== null
  const silent = page.items.length === 1 && !header && page.shape.more === null
  const onward = { param: null, byId: false, ...frame.onward, header, silent }
  const isPlain = !header && !silent && frame.onward === undefined
  const plain = withoutGuess(frame, page.items.length === 1)
  const known = { ...plain, ...(!isPlain && { onward }), learned: true }
  return probed.learned ? withNextOf(known, probed) : known
}

/** A cursor object without a cursor is where one is guessed to stand, until a page that is not the last has none there. */
function withoutGuess(frame: Frame, isRefuted: boolean): Frame {
  const isGuess = !frame.learned && frame.ending === 'absent'
  return isGuess && isRefuted ? { ...frame, cursor: null } : frame
}
