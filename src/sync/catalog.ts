import { messageOf, MirrorError } from '../errors.ts'
import type { Quarantine } from '../store/quarantine.ts'
import type { HeldAnswer } from '../store/catalog-answers.ts'
import type { CatalogContext } from './catalog-context.ts'
import type { Crawl } from './catalog-crawl.ts'
import { fetchAnswer } from './catalog-fetch.ts'
import { guardCatalog } from './catalog-guard.ts'
import { publishCatalog } from './catalog-publish.ts'
import { type Scope, scopeOf } from './catalog-scope.ts'
import {
  type Task,
  releaseTasks,
  resourceNamed,
  taskAlone,
  taskOfDay,
  tasksOfItem,
} from './catalog-tasks.ts'
import {
  type Walks,
  isFatal,
  itemsOf,
  resourcesOf,
  walkLists,
  walkSublists,
  wantedLists,
} from './catalog-walk.ts'
import type { SyncResult } from './context.ts'
import { runPool } from './pool.ts'

/**
 * One run of the catalog, or of the identity surface: lists → scope → items and artifacts → guard → commit. What is
 * fetched is kept at once and published in one transaction at the end, so a killed run goes on where it was.
 */
export async function syncCatalog(
  context: CatalogContext,
  approved: Quarantine | null,
): Promise<SyncResult> {
  const { facts, store } = context
  const walks: Walks = { walked: new Map(), failed: new Map() }
  await walkLists(context, walks)
  const scope = readScope(context, walks)
  await walkSublists(context, walks, scope)
  const crawl: Crawl = {
    walks,
    wanted: new Map(),
    wantedLists: wantedLists(context, scope),
    confirmed: [],
    lacking: new Map(walks.failed),
    fetched: 0,
  }
  const held = new Map([...store.eachHeldAnswer()].map((answer) => [answer.path, answer]))
  await fetchAll(context, crawl, held, itemTasks(context, walks, scope))
  await fetchAll(context, crawl, held, mentionTasks(context, crawl))
  facts['listed'] = walks.walked.size
  facts['inScope'] = scope.images.length + scope.tags.length + scope.packages.length
  facts['fetched'] = crawl.fetched
  const refused = await guardCatalog(context, crawl, held, approved)
  if (refused !== null) return refused
  return publishCatalog(context, crawl, held)
}

function readScope(context: CatalogContext, walks: Walks): Scope {
  if (context.source === 'identity') return { images: [], tags: [], packages: [] }
  const items = (name: string) => itemsOf(context, walks, resourceNamed(name))
  return scopeOf(context.config.catalog, {
    subscriptions: items('subscriptions'),
    images: items('images'),
    tags: items('tags'),
    packages: items('packages'),
  })
}

function itemTasks(context: CatalogContext, walks: Walks, scope: Scope): Task[] {
  const tasks: Task[] = []
  const scoped: Record<string, Scope['tags']> = { ...scope }
  for (const resource of resourcesOf(context)) {
    const { name, item, list, artifacts } = resource
    if (list === null && item !== null) tasks.push(taskAlone(resource, item, context.runId))
    else if (item !== null || artifacts.length > 0) {
      const items = scoped[name] ?? (list === null ? [] : itemsOf(context, walks, resource))
      for (const { id, sha } of items) tasks.push(...tasksOfItem(resource, id, sha))
    }
  }
  if (context.source === 'catalog' && context.has('catalog'))
    tasks.push(...releaseTasks(scope.packages))
  return tasks
}

/** Artifact sets that what is held names, or that the settings list. */
function mentionTasks(context: CatalogContext, { wanted }: Crawl): Task[] {
  if (context.source !== 'catalog') return []
  const avrs = resourceNamed('avrs')
  const owners = new Set([...wanted.values()].map(({ owner }) => owner))
  const tasks = new Map<string, Task[]>()
  for (const id of context.config.catalog.avrIds) tasks.set(id, taskOfDay(avrs, id, context.now()))
  for (const [id, owner, sha] of context.store.listMentions())
    if (owners.has(owner)) tasks.set(id, tasksOfItem(avrs, id, sha))
  return [...tasks.values()].flat()
}

async function fetchAll(
  context: CatalogContext,
  crawl: Crawl,
  held: ReadonlyMap<string, HeldAnswer>,
  tasks: readonly Task[],
): Promise<void> {
  const { store, full, config } = context
  const inHand = store.listFetched()
  const due = tasks.filter((task) => {
    crawl.wanted.set(task.canonical, task)
    const sha =
      inHand.get(task.canonical) ?? (full ? undefined : held.get(task.canonical)?.ownerSha)
    return sha?.equals(task.ownerSha) !== true
  })
  if (context.dryRun) {
    context.facts['due'] = Number(context.facts['due'] ?? 0) + due.length
    return
  }
  await runPool(due, config.catalog.concurrency, async (task, done) => {
    context.progress({
      source: context.source,
      phase: 'items',
      unit: 'items',
      done,
      total: due.length,
    })
    await fetchOne(context, crawl, held.get(task.canonical) ?? null, task)
  })
}

async function fetchOne(
  context: CatalogContext,
  crawl: Crawl,
  held: HeldAnswer | null,
  task: Task,
): Promise<void> {
  const { store } = context
  try {
    const answer = await fetchAnswer(context, task, held)
    if (answer === null) {
      crawl.confirmed.push(task)
      return
    }
    if (answer.status === 404 && task.document === null) {
      // Listed, so only the list decides that it is gone; what is held stays.
      crawl.lacking.set(task.canonical, 'upstream lists it but answers 404')
      if (held?.status === 200) return
    }
    await store.gathered(() => store.keepFetched(answer))
    crawl.fetched++
  } catch (error) {
    context.session.signal.throwIfAborted()
    if (!(error instanceof MirrorError) || isFatal(error)) throw error
    crawl.lacking.set(task.canonical, messageOf(error))
  }
}
