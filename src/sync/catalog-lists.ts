import { MirrorError } from '../errors.ts'
import type { Frame } from '../json/frame.ts'
import { frameOf, withNextOf } from '../json/frame-learn.ts'
import { canonicalPath } from '../paths.ts'
import type { Facet, Resource } from '../resources.ts'
import type { CatalogList } from '../store/catalog.ts'
import { probeList, walkList } from '../upstream/pages.ts'
import type { CatalogContext } from './catalog-context.ts'
import { type FacetReader, createFacetReader } from './catalog-facets.ts'
import { LIMIT, createSink, newWalk } from './catalog-stage.ts'
import { refuseCostly } from './json-cost.ts'

/** A list that was walked; its pages wait in the staging tables under its path. */
export interface WalkedList {
  /** Canonical. */
  path: string
  resource: Resource
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
 * is kept as upstream's bytes. Throws `upstream_*`; `upstream_shape` for an item that is no object.
 */
export async function walkCatalogList(
  context: CatalogContext,
  resource: Resource,
  template: { path: string; facets: readonly Facet[] },
  path: string,
): Promise<WalkedList> {
  const { store, config } = context
  const canonical = canonicalPath(path) ?? path
  const held = store.readCatalogList(canonical)
  const names = held === null ? null : store.readFieldNames(held.id)
  // Of a list whose field names were never learned, what its filters compare is to be read again.
  const pages = held === null || names === null ? [] : store.listCatalogPages(held.id)
  const facets = createFacetReader(template.facets, names ?? [])
  const known = frameHeld(held)
  const walk = newWalk(known)
  const options = {
    limit: LIMIT,
    maxBytes: config.upstream.maxJsonBytes,
    held: (number: number) => (context.full ? null : (pages[number] ?? null)),
    refuse: refuseCostly,
  }
  const target = { resource, facets, path, canonical }
  const sink = createSink(context, target, pages, walk)
  const session = context.sessionOf(resource.surface)
  const walkOnce = (): Promise<number> =>
    walkList(session, context.relative(resource, path), options, sink)
  let asOf: number
  try {
    asOf = await walkOnce()
    // An item that moved to a page that was read already is on none: the list tells how many there should be.
    if (walk.count > 1 && walk.total !== null && walk.total !== walk.met) asOf = await walkOnce()
    if (walk.frame?.learned === false && walk.met > 1)
      walk.frame = await probe(context, resource, path, walk.frame)
  } catch (error) {
    await store.exclusive(() => store.catalogStaging.dropWalk(canonical))
    throw error
  }
  if (walk.frame === null) throw new MirrorError('internal', `${path} was walked without a page`)
  const learned = known?.learned !== walk.frame.learned
  const changed = learned || walk.kept !== walk.count || walk.count !== pages.length
  const { frame } = walk
  facets.settle(walk.kept > 0)
  return { path: canonical, resource, held: held?.id ?? null, changed, frame, facets, asOf }
}

function frameHeld(held: CatalogList | null): Frame | null {
  return held === null ? null : (JSON.parse(held.frame) as Frame)
}

/** Whether a list that is held is still to be looked at for how it names its next page: upstream failed when it was asked. */
export function isUnlearned(held: CatalogList): boolean {
  return held.entries > 1 && frameHeld(held)?.learned === false
}

/**
 * A list that fits on one page does not show how it names the next one. A page of one item does, and the mirror needs to
 * know to give its own clients pages of any size.
 */
async function probe(
  context: CatalogContext,
  resource: Resource,
  path: string,
  frame: Frame,
): Promise<Frame> {
  const page = await probeList(
    context.sessionOf(resource.surface),
    context.relative(resource, path),
    {
      maxBytes: context.config.upstream.maxJsonBytes,
    },
  )
  if (page === 'later') return frame
  if (page === 'refused') return { ...frame, learned: true }
  const probed = frameOf(page.value, page.shape, 1)
  return { ...(probed.learned ? withNextOf(frame, probed) : frame), learned: true }
}
