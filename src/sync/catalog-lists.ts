import { createHash } from 'node:crypto'
import { MirrorError, messageOf } from '../errors.ts'
import type { Frame } from '../json/frame.ts'
import { endingOf, frameOf, withNextOf } from '../json/frame-learn.ts'
import { valueAt } from '../json/locate.ts'
import { canonicalPath } from '../paths.ts'
import type { Facet, Resource } from '../resources.ts'
import type { CatalogList, CatalogPage } from '../store/catalog.ts'
import type { StagedEntry } from '../store/catalog-staging.ts'
import { type PageSink, type WalkedPage, probeList, walkList } from '../upstream/pages.ts'
import type { CatalogContext } from './catalog-context.ts'
import { withoutSecrets } from './catalog-secrets.ts'
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
  /** Upstream's date, unix milliseconds. */
  asOf: number
}

const LIMIT = 1000

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
  const pages = held === null ? [] : store.listCatalogPages(held.id)
  const walk: Walk = {
    frame: frameHeld(held),
    count: 0,
    kept: 0,
    met: 0,
    total: null,
    seen: new Set(),
  }
  const options = {
    limit: LIMIT,
    maxBytes: config.upstream.maxJsonBytes,
    held: (number: number) => (context.full ? null : (pages[number] ?? null)),
    refuse: refuseCostly,
  }
  const target = { resource, facets: template.facets, path, canonical }
  const sink = createSink(context, target, pages, walk)
  const session = context.sessionOf(resource.surface)
  const walkOnce = (): Promise<number> =>
    walkList(session, context.relative(resource, path), options, sink)
  let asOf: number
  try {
    asOf = await walkOnce()
    // An item that moved to a page that was read already is on none: the list tells how many there should be.
    if (walk.count > 1 && walk.total !== null && walk.total !== walk.met) asOf = await walkOnce()
  } catch (error) {
    await store.exclusive(() => store.catalogStaging.dropWalk(canonical))
    throw error
  }
  if (walk.frame?.learned === false && walk.seen.size > 1)
    walk.frame = await probe(context, resource, path, walk.frame)
  if (walk.frame === null) throw new MirrorError('internal', `${path} was walked without a page`)
  const changed = held === null || walk.kept !== walk.count || walk.count !== pages.length
  return { path: canonical, resource, held: held?.id ?? null, changed, frame: walk.frame, asOf }
}

/** How far a walk is. */
interface Walk {
  frame: Frame | null
  count: number
  kept: number
  /** Items on its pages. */
  met: number
  /** How many there are by the last page, when that came anew and tells. */
  total: number | null
  seen: Set<string>
}

function frameHeld(held: CatalogList | null): Frame | null {
  return held === null ? null : (JSON.parse(held.frame) as Frame)
}

interface Target {
  resource: Resource
  facets: readonly Facet[]
  path: string
  canonical: string
}

/** Stages pages as they come; never into another source's transaction, which may be rolled back. */
function createSink(
  context: CatalogContext,
  { resource, facets, path, canonical }: Target,
  pages: readonly CatalogPage[],
  walk: Walk,
): PageSink {
  const { store } = context
  const staging = store.catalogStaging
  return {
    begin() {
      walk.seen.clear()
      walk.count = 0
      walk.kept = 0
      walk.met = 0
      walk.total = null
      return store.exclusive(() => staging.dropWalk(canonical))
    },
    kept(number) {
      const page = pages[number]
      if (page === undefined)
        throw new MirrorError('internal', `${path}: page ${number} is not held`)
      walk.count++
      walk.kept++
      walk.met += page.entries
      return store.exclusive(() => staging.keepPage(canonical, page))
    },
    page(page) {
      if (page.number === 0) walk.frame = frameOf(page.value, page.shape, LIMIT)
      if (page.next === null && walk.frame !== null && page.number > 0)
        walk.frame = { ...walk.frame, ending: endingOf(page.value, walk.frame.cursor) }
      const entries = page.items.map((item) => entryOf(resource, facets, item, path))
      walk.met += refuseRepetition(path, page, entries, walk.seen)
      if (page.next === null) walk.total = totalOf(page)
      walk.count++
      context.counted(entries.length)
      return store.exclusive(() =>
        staging.stagePage(canonical, { ...page, entries: entries.length }, entries),
      )
    },
  }
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
  if (page === null) return { ...frame, learned: true }
  const probed = frameOf(page.value, page.shape, 1)
  return { ...(probed.learned ? withNextOf(frame, probed) : frame), learned: true }
}

/** How many items the list has by its own word; null when it does not say. */
function totalOf({ value, shape: { totalPath } }: WalkedPage): number | null {
  const total = totalPath === null ? null : valueAt(value, totalPath)
  return typeof total === 'number' ? total : null
}

/** A cursor that never ends brings the same items again and again under new names. Returns how many are new. */
function refuseRepetition(
  path: string,
  page: WalkedPage,
  entries: readonly StagedEntry[],
  seen: Set<string>,
): number {
  const before = seen.size
  for (const { id } of entries) seen.add(id)
  if (entries.length > 0 && seen.size === before && page.number > 0) {
    const message = `${path}: page ${page.number + 1} brings nothing but what earlier pages had`
    throw new MirrorError('upstream_shape', message)
  }
  return seen.size - before
}

function entryOf(
  resource: Resource,
  facets: readonly Facet[],
  item: Buffer,
  path: string,
): StagedEntry {
  const body = resource.secrets ? withoutSecrets(item, path) : item
  const value = parseItem(body, path)
  const sha = createHash('sha256').update(body).digest().subarray(0, 16)
  return {
    id: idOf(resource, value) ?? `-${sha.toString('hex')}`,
    body: Buffer.from(body), // the item alone, not the page that it is a part of
    sha,
    facets: facets.map(({ field }) => facetText(value[field])),
  }
}

function facetText(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}

function parseItem(item: Buffer, path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(item.toString('utf8'))
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: an item is not JSON (${messageOf(error)})`)
  }
  throw new MirrorError('upstream_shape', `${path}: an item is no object`)
}

/** An item's own identifier; null when it has none. */
export function idOf({ ids }: Resource, value: Record<string, unknown>): string | null {
  for (const field of ids) {
    const id = value[field]
    if (typeof id === 'string' && id !== '') return id.toWellFormed() // as the database keeps it
    if (typeof id === 'number') return String(id)
  }
  return null
}
