import { counted } from '../../base/text.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { parseReplaced } from '../../store/catalog/lists.ts'
import {
  type CatalogResource,
  listPathOf,
  ownsResource,
  resourceNamed,
  resourceOf,
} from '../../base/domain/resources.ts'
import { type StoredAnswer, type StoredAnswers, isNone } from '../../store/catalog/answers.ts'
import { refuseRemoval, removalLimits } from '../refusals.ts'
import { type Task, detailsPathOf, isDocument, mustExist, versionsPathOf } from './answers/plan.ts'
import { isEmptied, namesFewer, saysNothing, versionsOfItem } from './answers/releases.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl } from './crawl.ts'
import { LASTING } from './lists/completeness.ts'
import { unnamedByItems } from './poorer-items.ts'
import { artifactKind } from './unsure.ts'

/** What of one kind of items, or of one list, a run would remove. */
export interface RemovedItems {
  /** The path of a list, or the kind of items. */
  readonly key: string
  /** The resource of a list; null: it is of a kind of items. */
  readonly resource: string | null
  /** Number of what is stored. */
  readonly total: number
  /** Ids or paths, in order. */
  readonly gone: readonly string[]
  /** Why one run may not remove so much; null: it may. */
  readonly reason: string | null
}

/** Returns what a run would remove: of each list, and of items, artifacts, answers and lists as a whole. `answers`: those that leave the scope. */
export function removedItems(
  context: CatalogContext,
  crawl: Crawl,
  stored: StoredAnswers,
  answers: readonly GoneAnswer[],
): RemovedItems[] {
  const listed = listedItems(context, crawl)
  const lost = lostArtifacts(context, crawl, stored)
  const owners = ownersOf(context, crawl, stored)
  const lists = lostLists(context, crawl)
  const versions = unnamed(context, crawl, stored, answers)
  const poorer = unnamedByItems(context, crawl, { answers, lists: lists.gone })
  const kinds: [key: string, noun: string, found: Gone][] = [
    ['owners', 'items with their artifacts', owners],
    ['artifacts', LOST_ARTIFACTS, lost],
    ['versions', UNNAMED, versions],
    ['refused', 'answers, which the service refuses now (403)', hiddenAnswers(context, crawl, stored)],
    ['lists', 'lists', lists],
  ]
  const ofKind = new Map([
    [lost, () => lostKind(stored, lost, LOST_ARTIFACTS)],
    [versions, () => lostKind(stored, versions, UNNAMED)],
    [owners, () => lostScope(context, crawl, stored, { owners, listed })],
  ])
  const items = kinds.map(([key, noun, found]): RemovedItems => {
    const { stored: total, gone } = found
    const reason = reasonOf(context, found, noun) ?? ofKind.get(found)?.() ?? null
    return { key, resource: null, total, gone, reason }
  })
  const ofPoorer = {
    key: 'unnamed',
    resource: null,
    total: stored.owners().size,
    gone: poorer.paths,
    reason: poorer.reason,
  }
  return [...listed, ...items, ofPoorer].filter(({ gone }) => gone.length > 0)
}

/** A stored answer that leaves the scope. */
type GoneAnswer = Pick<StoredAnswer, 'path' | 'owner'>

function listedItems(context: CatalogContext, { walks }: Crawl): RemovedItems[] {
  const { catalog } = context.store
  return [...walks.walked.values()].flatMap(({ path, resource, stored: id, isOtherForm }): RemovedItems[] => {
    const list = id === null ? null : catalog.readList(path)
    if (list === null || catalog.countGone(list.id, path) === 0) return []
    const found = { stored: list.entries, gone: [...catalog.eachGone(list.id, path)] }
    const [first] = catalog.eachWalked(id, path)
    const isEmptied = first === undefined && path === listPathOf(resource) && isLasting(context, resource)
    const other = isOtherForm ? otherForm(found) : null
    const reason = other ?? (isEmptied ? refuseAll(found) : reasonOf(context, found, 'items'))
    const why = reason === null ? null : `${path}: ${reason}`
    return [{ key: path, resource: resource.name, total: found.stored, gone: found.gone, reason: why }]
  })
}

/** Returns whether a list is not emptied at once: an account may well lose its few keys, and its subscriptions where they are not the scope. */
function isLasting({ config }: CatalogContext, { name }: CatalogResource): boolean {
  return LASTING.has(name) || (name === 'subscriptions' && config.catalog.scope === 'subscribed')
}

/** Returns why what a list lacks is not known to be gone where its pages have another form: something else may have answered. */
function otherForm({ gone }: Gone): string {
  return `its pages have another form than before, and lack ${counted(gone.length, 'stored item')}`
}

const LOST_ARTIFACTS = 'artifacts, for which upstream answers 404, 204 or an empty list'

function refuseAll({ stored, gone }: Gone, noun = 'items'): string | null {
  return stored === 1 ? null : refuseRemoval(stored, gone.length, { count: 0, fraction: 0 }, noun)
}

function reasonOf({ config }: CatalogContext, { stored, gone }: Gone, noun: string): string | null {
  const limits = removalLimits(config)
  return gone.length <= limits.count ? null : refuseRemoval(stored, gone.length, limits, noun)
}

interface Gone {
  readonly stored: number
  readonly gone: readonly string[]
}

/** Reports whether something that a run removed is there again. `key`: as of `RemovedItems`. */
export function isThereAgain({ store: { catalog } }: CatalogContext, key: string, id: string): boolean {
  if (key === 'owners') return catalog.hasAnswers(id)
  if (key === 'artifacts') return !saysNothing(catalog.readAnswer(id))
  if (key === 'versions' || key === 'refused') return catalog.readAnswer(id)?.status === 200
  if (key === 'lists') return catalog.readList(id) !== null
  const list = catalog.readList(key)
  return list !== null && catalog.readEntry(list.id, id) !== null
}

/** Returns the number of stored artifacts, and the paths of those of which the fetched answer says that there is nothing. */
function lostArtifacts(context: CatalogContext, { wanted, settled }: Crawl, stored: StoredAnswers): Gone {
  const { catalog } = context.store
  const artifactAt = (path: string): Task | null => {
    const task = wanted.get(path)
    return task === undefined || mustExist(task) ? null : task
  }
  const isLost = (path: string): boolean => {
    const task = stored.get(path)?.status === 200 ? artifactAt(path) : null
    if (task === null) return false
    return isNone(catalog.readFetched(path)) || isEmptied(context, task, catalog.readFetchedBody(path))
  }
  const gone = [...catalog.eachFetchedPath()].filter(isLost)
  let count = 0
  // Where nothing is lost, the number of artifacts decides nothing.
  if (gone.length > 0)
    for (const { path, owner, status } of stored.ofOwners(() => true))
      if (status === 200 && (settled.owner(owner) ? isDocument(path) : artifactAt(path) !== null)) count++
  return { stored: count, gone: gone.sort() }
}

const UNNAMED = 'answers about versions, which their packages do not name any more'

/**
 * Returns the number of stored answers about versions, and the paths of those that go because lists of versions are shorter, or name
 * the architectures of a version no more.
 */
function unnamed(
  context: CatalogContext,
  { wanted }: Crawl,
  stored: StoredAnswers,
  answers: readonly { readonly path: string }[],
): Gone {
  const lists = Map.groupBy(answers, ({ path }) => versionsPathOf(path))
  const gone: string[] = []
  for (const [list, paths] of lists)
    if (wanted.has(list)) {
      const isFewer = namesFewer(context, list)
      gone.push(...paths.map(({ path }) => path).filter((path) => isFewer || wanted.has(detailsPathOf(path))))
    }
  if (gone.length === 0) return { stored: 0, gone }
  const all = [...stored.ofOwners((owner) => resourceOf(owner) === 'packages')]
  return { stored: all.filter(({ path }) => versionsPathOf(path) !== '').length, gone: gone.sort() }
}

/** Returns why a run may not remove all artifacts of one kind: a proxy may answer for their paths. One alone may be gone. */
function lostKind(stored: StoredAnswers, { gone }: Gone, noun: string): string | null {
  if (gone.length < 2) return null
  const left = new Set<string>()
  const lost = new Set(gone)
  for (const { path, status } of stored.ofOwners(() => true))
    if (status === 200 && !lost.has(path)) left.add(artifactKind(path))
  for (const [kind, paths] of Map.groupBy(gone, artifactKind))
    if (paths.length > 1 && !left.has(kind)) return `${refuseAll({ stored: paths.length, gone: paths }, noun)}: ${kind}`
  return null
}

/**
 * Returns why a run may not remove each image, tag and package that is mirrored, however few they are, where none is listed any more or
 * nothing else is in scope: another account may have answered, or its subscriptions are lost. The lists show where others are chosen,
 * and later versions of all packages do.
 */
function lostScope(
  context: CatalogContext,
  { wanted }: Crawl,
  stored: StoredAnswers,
  { owners: { gone }, listed }: { owners: Gone; listed: readonly RemovedItems[] },
): string | null {
  if (gone.length === 0) return null
  const isScoped = (owner: string): boolean => SCOPED.has(resourceOf(owner))
  const scoped = [...stored.owners()].filter(isScoped)
  const lost = new Set(gone)
  if (scoped.length === 0 || !scoped.every((owner) => lost.has(owner))) return null
  const unlisted = new Set(listed.flatMap(({ resource, gone: ids }) => ids.map((id) => `${resource}/${id}`)))
  const isReplaced = [...wanted.values()].some(({ owner }) => isScoped(owner))
  if (isReplaced && !scoped.every((owner) => unlisted.has(owner))) return null
  if (scoped.every((owner) => isSucceeded(context, wanted, owner))) return null
  return `it would remove every image, tag and package that is mirrored (${scoped.length})`
}

/** Reports whether a package is gone from its list, and another item of its name is mirrored: a later version, with an id of its own. */
function isSucceeded({ store: { catalog } }: CatalogContext, wanted: Crawl['wanted'], owner: string): boolean {
  if (resourceOf(owner) !== 'packages') return false
  const list = catalog.readList(listPathOf(resourceNamed('packages')))
  const entry = list === null ? null : catalog.readEntry(list.id, owner.slice(owner.indexOf('/') + 1))
  const item = entry === null ? null : parseReplaced(entry.body)
  return item !== null && wanted.has(versionsOfItem(fieldsOfItem(item, 'packages')))
}

/** What the scope consists of. */
const SCOPED: ReadonlySet<string> = new Set(['images', 'tags', 'packages'])

/** Returns the number of stored answers that are served, and the paths of those that the service refuses now. */
function hiddenAnswers({ store, source }: CatalogContext, { forbidden }: Crawl, stored: StoredAnswers): Gone {
  if (forbidden.size === 0) return { stored: 0, gone: [] }
  const before = new Set(store.catalog.listForbiddenPaths().map(({ path }) => path))
  const isOwn = (owner: string): boolean => ownsResource(source, resourceOf(owner))
  const served = [...stored.ofOwners(isOwn)].filter(({ path, status }) => status === 200 && !before.has(path))
  const gone = served.map(({ path }) => path).filter((path) => forbidden.has(path))
  return { stored: served.length, gone: gone.sort() }
}

/** Returns the number of stored lists and the paths of those that are no longer in scope. */
function lostLists({ store, source }: CatalogContext, { wantedLists }: Crawl): Gone {
  const own = store.catalog.listLists().filter(({ resource }) => ownsResource(source, resource))
  const gone = own.map(({ path }) => path).filter((path) => !wantedLists.has(path))
  return { stored: own.length, gone }
}

/** Returns the number of items with stored answers, and those of them that are no longer in scope. */
function ownersOf({ source }: CatalogContext, { wanted, settled }: Crawl, stored: StoredAnswers): Gone {
  const kept = new Set([...wanted.values()].map(({ owner }) => owner))
  const all = [...stored.owners()].filter((owner) => ownsResource(source, resourceOf(owner)))
  const gone = all.filter((owner) => !kept.has(owner) && !settled.owner(owner))
  return { stored: all.length, gone: gone.sort() }
}
