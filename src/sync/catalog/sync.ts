import { resourceNamed } from '../../base/domain/resources.ts'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { counted } from '../../base/text.ts'
import type { StoredAnswers } from '../../store/catalog/answers.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl, Settled, Walks } from './crawl.ts'
import { fetchAll } from './answers/fetch-all.ts'
import { refreshScopeOf, carriedOver, isNarrow } from './scope/refresh-scope.ts'
import { recordDoubts } from '../doubts.ts'
import { judgeArtifacts } from './artifacts-guard.ts'
import { guardCatalog } from './guard.ts'
import { publishCatalog } from './publish.ts'
import { removedItems } from './removed-items.ts'
import { NAMED, listGone } from './removals.ts'
import { architectureTasks, carriedReleases, releaseTasks, versionTasks } from './answers/releases.ts'
import { type ListedItem, type Scope, scopeOf } from './scope/scope.ts'
import {
  NONE_SETTLED,
  listedDigest,
  packageScopeOf,
  recordSettled,
  settledOf,
  settledPackages,
} from './scope/settled.ts'
import { type Task, digestOf, singletonTask, dailyTasks, tasksOfItem } from './answers/plan.ts'
import { noteSignatures } from './signatures.ts'
import { settleUnsure } from './unsure.ts'
import { namelessLists, withNameless } from './lists/nameless.ts'
import { itemsOf, resourcesOf, walkLists, walkSublists, wantedLists } from './lists/walk.ts'
import type { SyncResult } from '../context.ts'

/**
 * Executes one run of the catalog, or of the identity surface: lists → scope → items and artifacts → guard → commit.
 * Fetched answers are stored immediately and published in one transaction at the end, so the run after a killed one
 * continues where that one stopped.
 */
export async function syncCatalog(context: CatalogContext, approved: Quarantine | null): Promise<SyncResult> {
  const { store } = context
  const walks = noWalks()
  try {
    return await crawlAll(context, walks, approved)
  } finally {
    // Drop the staged pages however the run ended; they would only fill the disk.
    await store.exclusive(() => {
      for (const path of walks.walked.keys()) store.catalog.staging.dropWalk(path)
    })
  }
}

function noWalks(): Walks {
  return {
    walked: new Map(),
    failed: new Map(),
    forbidden: new Set(),
    ownFailures: new Set(),
    error: null,
  }
}

async function crawlAll(context: CatalogContext, walks: Walks, approved: Quarantine | null): Promise<SyncResult> {
  const known = await readMeanwhile(context, walkLists(context, walks))
  const { crawl, tasks, inScope } = await planCrawl(context, walks, known)
  const stored = known ?? context.store.catalog.readStoredAnswers()
  await fetchInTurn(context, crawl, stored, tasks)
  const nameless = namelessLists(context, walks)
  const warnings = noteCrawl(context, crawl, inScope)
  const answers = listGone(context, crawl, stored)
  const removed = removedItems(context, crawl, stored, answers)
  const artifacts = await judgeArtifacts(context, (path) => crawl.wanted.has(path), { answers, items: removed })
  if (artifacts !== null) recordDoubts(context, artifacts.verdict)
  const refused = await guardCatalog(context, removed, approved, artifacts?.verdict ?? null)
  if (refused !== null) return refused
  const published = await publishCatalog(context, crawl, { artifacts, approved, removed: { answers, items: removed } })
  const result = withNameless(published, nameless)
  recordSettled(context, crawl)
  const isVerified = !context.dryRun && !isNarrow(context) && context.source === 'catalog'
  const unverified = isVerified ? await noteSignatures(context) : null
  if (unverified !== null) warnings.push(unverified)
  return { ...result, message: [result.message, ...warnings].join('; ') }
}

/** Fetches the first tasks of a run, and then what the fetched answers lead to. */
async function fetchInTurn(
  context: CatalogContext,
  crawl: Crawl,
  stored: StoredAnswers,
  first: readonly Task[],
): Promise<void> {
  const fetch = (tasks: readonly Task[]): Promise<void> => fetchAll(context, crawl, stored, tasks)
  await fetch(first)
  await fetch(carriedReleases(context, crawl, stored))
  await fetch(versionTasks(context, crawl))
  await fetch(architectureTasks(context, crawl))
  await fetch(mentionTasks(context, crawl))
  await settleUnsure(context, crawl)
  crawl.carriedOver = carriedOver(context, crawl, stored)
}

/** Records in the facts what a crawl found. Returns what the run warns of, though it may be complete. */
function noteCrawl({ facts }: CatalogContext, crawl: Crawl, inScope: number): string[] {
  const { walked, failed } = crawl.walks
  facts['listed'] = walked.size
  if (failed.size > 0) facts['listsFailed'] = [...failed.keys()].slice(0, NAMED)
  const unusable = unusableFilters(crawl)
  if (unusable.length > 0) facts['filtersUnusable'] = unusable
  const unproved = unprovedLists(crawl)
  if (unproved.length > 0) facts['unprovedLists'] = unproved.slice(0, NAMED)
  facts['inScope'] = inScope
  facts['fetched'] = crawl.fetched
  const { linksLeft } = crawl
  if (linksLeft.size > 0) {
    facts['linksLeft'] = linksLeft.size
    facts['linksLeftIds'] = [...linksLeft].slice(0, NAMED).map(([path, why]) => `${path}: ${why}`)
  }
  const warnings: string[] = []
  if (unusable.length > 0)
    warnings.push(`these filters match no field of any item, or several fields: ${unusable.join(', ')}`)
  if (unproved.length > 0)
    warnings.push(
      `the end of ${counted(unproved.length, 'list is', 'lists are')} not proved: ${unproved.slice(0, 3).join('; ')}`,
    )
  return warnings
}

/** Waits for the lists. Reads the stored items of a refresh meanwhile; null: another run would have all answers and the lists in memory. */
async function readMeanwhile(context: CatalogContext, walking: Promise<void>): Promise<StoredAnswers | null> {
  const { catalog } = context.store
  const reading = isNarrow(context) ? nextIteration().then(() => catalog.readStoredOwners()) : null
  const [known] = await Promise.allSettled([reading, walking])
  await walking
  if (known.status === 'rejected') throw known.reason
  return known.value
}

/** What a run requests first, and the number of items in scope. */
interface Plan {
  crawl: Crawl
  tasks: Task[]
  inScope: number
}

/** Computes the scope of a run and its first tasks; the listed items are free afterwards, as a crawl takes long. */
async function planCrawl(context: CatalogContext, walks: Walks, known: StoredAnswers | null): Promise<Plan> {
  const before = settledPackages(context)
  const areRead = before === null || context.config.catalog.scope !== 'all'
  const scope = readScope(context, walks, areRead)
  const packages = areRead ? packageScopeOf(scope.packages) : before
  const continued = packages.digest === before?.digest ? known : null
  await walkSublists(context, walks, scope)
  const refreshScope = refreshScopeOf(context, walks, scope)
  const settled = continued === null ? NONE_SETTLED : settledOf(scope, refreshScope, continued)
  const crawl: Crawl = {
    walks,
    refreshScope,
    settled,
    packages,
    wanted: new Map(),
    wantedLists: wantedLists(context, scope),
    confirmed: [],
    missing: new Map(walks.failed),
    forbidden: new Set(walks.forbidden),
    none: new Map(),
    linksLeft: new Map(),
    pending: new Set(),
    unsure: [],
    incomplete: incompleteOf(walks),
    subscriptions: scope.subscriptions,
    fetched: 0,
    droppedFetched: false,
    requested: new Set([...walks.walked.keys(), ...walks.failed.keys()]),
    carriedOver: { missing: new Map(), unrequested: 0 },
  }
  const tasks = continued === null ? itemTasks(context, walks, scope) : changedTasks(scope, settled)
  return { crawl, tasks, inScope: scope.images.length + scope.tags.length + packages.count }
}

/** Returns the query parameters of lists that match no item field: the mirror cannot answer them and reports this. */
function unusableFilters({ walks }: Crawl): string[] {
  return [...walks.walked.values()]
    .filter(({ facets }) => facets.names().length > 0)
    .flatMap(({ path, facets }) => facets.unusable().map((param) => `${path}?${param}`))
}

/** Returns the lists whose end is not proved, each with the reason. */
function unprovedLists({ walks }: Crawl): string[] {
  return [...walks.walked.values()].flatMap(({ path, frame: { unproved } }) =>
    unproved === undefined ? [] : [`${path}: ${unproved}`],
  )
}

function incompleteOf({ walked }: Walks): Crawl['incomplete'] {
  const lists = [...walked.values()]
  return new Map(
    lists.flatMap(({ path, frame: { partial } }): [string, string][] =>
      partial === undefined ? [] : [[path, partial]],
    ),
  )
}

/** `withPackages`: false where those in scope are known. */
function readScope(context: CatalogContext, walks: Walks, withPackages: boolean): Scope {
  const { config, source, store } = context
  const subscriptions = { count: 0, unresolved: new Map<string, string>() }
  if (source === 'identity') return { images: [], tags: [], packages: [], subscriptions }
  const items = (name: string) => () => itemsOf(context, walks, resourceNamed(name))
  const input = {
    subscriptions: items('subscriptions'),
    images: items('images'),
    tags: items('tags'),
    packages: withPackages ? items('packages') : () => [],
  }
  return scopeOf(config.catalog, input, (owner) => store.catalog.hasAnswers(owner))
}

function itemTasks(context: CatalogContext, walks: Walks, scope: Scope): Task[] {
  const tasks: Task[] = []
  const { images, tags, packages } = scope
  const scoped: Record<string, Scope['tags']> = { images, tags, packages }
  for (const resource of resourcesOf(context)) {
    const { name, item, list, artifacts } = resource
    if (list === null && item !== null) tasks.push(singletonTask(resource, item))
    else if (item !== null || artifacts.length > 0) {
      const items = scoped[name] ?? (list === null ? [] : itemsOf(context, walks, resource))
      for (const { id, sha } of items) tasks.push(...tasksOfItem(resource, id, sha))
    }
  }
  if (context.source === 'catalog' && context.has('catalog')) {
    const listed = () => itemsOf(context, walks, resourceNamed('packages'))
    tasks.push(...releaseTasks(scope.packages, listed))
  }
  return tasks
}

/** Returns the tasks of images and tags in scope that are not settled. */
function changedTasks({ images, tags }: Scope, settled: Settled): Task[] {
  const tasksOf = (name: string, items: readonly ListedItem[]): Task[] =>
    items
      .filter(({ id }) => !settled.owner(`${name}/${id}`))
      .flatMap(({ id, sha }) => tasksOfItem(resourceNamed(name), id, sha))
  return [...tasksOf('images', images), ...tasksOf('tags', tags)]
}

/**
 * Returns the tasks of artifact sets that stored items name or the settings list; each is requested when an item that
 * names it changed.
 */
function mentionTasks(context: CatalogContext, { wanted, settled, refreshScope }: Crawl): Task[] {
  if (context.source !== 'catalog') return []
  const avrs = resourceNamed('avrs')
  const mentions = context.store.catalog.listMentions()
  const digests = new Map<string, Buffer | null>(
    mentions.map(([, owner]) => [owner, settled.owner(owner) ? listedDigest(context, owner) : null]),
  )
  for (const task of wanted.values())
    // the digest of a release is computed when it is asked for
    if (digests.get(task.owner) === null) digests.set(task.owner, task.ownerSha)
  const naming = new Map<string, string[]>()
  for (const [id, owner] of mentions) {
    const digest = digests.get(owner) ?? null
    if (digest === null) continue
    naming.set(id, [...(naming.get(id) ?? []), `${owner} ${digest.toString('hex')}`])
    if (refreshScope.covers({ owner })) refreshScope.add(`${avrs.name}/${id}`)
  }
  const named = [...naming].flatMap(([id, shas]) => tasksOfItem(avrs, id, digestOf(shas)))
  const listed = context.config.catalog.avrIds.filter((id) => !naming.has(id))
  return [...named, ...listed.flatMap((id) => dailyTasks(avrs, id, context.now()))]
}
