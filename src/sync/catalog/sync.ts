import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl, Walks } from './crawl.ts'
import { fetchAll } from './answers/fetch-all.ts'
import { focusOf, carriedOver } from './scope/refresh-scope.ts'
import { guardCatalog } from './guard.ts'
import { publishCatalog } from './publish.ts'
import { architectureTasks, leftReleases, releaseTasks, versionTasks } from './answers/releases.ts'
import { type Scope, scopeOf } from './scope/scope.ts'
import {
  type Task,
  digestOf,
  resourceNamed,
  taskAlone,
  taskOfDay,
  tasksOfItem,
} from './answers/plan.ts'
import { itemsOf, resourcesOf, walkLists, walkSublists, wantedLists } from './lists/walk.ts'
import type { SyncResult } from '../context.ts'

/**
 * One run of the catalog, or of the identity surface: lists → scope → items and artifacts → guard → commit. What is
 * fetched is kept at once and published in one transaction at the end, so a killed run goes on where it was.
 */
export async function syncCatalog(
  context: CatalogContext,
  approved: Quarantine | null,
): Promise<SyncResult> {
  const { store } = context
  const walks: Walks = { walked: new Map(), failed: new Map(), error: null }
  try {
    return await crawlAll(context, walks, approved)
  } finally {
    // Whatever became of the run: what waits to be published would only fill the disk.
    await store.exclusive(() => {
      for (const path of walks.walked.keys()) store.catalogStaging.dropWalk(path)
    })
  }
}

async function crawlAll(
  context: CatalogContext,
  walks: Walks,
  approved: Quarantine | null,
): Promise<SyncResult> {
  const { facts, store } = context
  await walkLists(context, walks)
  const scope = readScope(context, walks)
  await walkSublists(context, walks, scope)
  const crawl: Crawl = {
    walks,
    focus: focusOf(context, walks, scope),
    wanted: new Map(),
    wantedLists: wantedLists(context, scope),
    confirmed: [],
    lacking: new Map(walks.failed),
    pending: new Set(),
    incomplete: incompleteOf(walks),
    subscriptions: scope.subscriptions,
    fetched: 0,
    tried: new Set([...walks.walked.keys(), ...walks.failed.keys()]),
    left: { lacking: new Map(), unseen: 0 },
  }
  const held = new Map([...store.eachStoredAnswer()].map((answer) => [answer.path, answer]))
  await fetchAll(context, crawl, held, itemTasks(context, walks, scope))
  await fetchAll(context, crawl, held, leftReleases(context, crawl, held))
  await fetchAll(context, crawl, held, versionTasks(context, crawl))
  await fetchAll(context, crawl, held, architectureTasks(context, crawl))
  await fetchAll(context, crawl, held, mentionTasks(context, crawl))
  crawl.left = carriedOver(context, crawl, held)
  facts['listed'] = walks.walked.size
  if (walks.failed.size > 0) facts['listsFailed'] = [...walks.failed.keys()].slice(0, 20)
  const unusable = unusableFilters(crawl)
  if (unusable.length > 0) facts['filtersUnusable'] = unusable
  facts['inScope'] = scope.images.length + scope.tags.length + scope.packages.length
  facts['fetched'] = crawl.fetched
  const refused = await guardCatalog(context, crawl, held, approved)
  if (refused !== null) return refused
  const result = await publishCatalog(context, crawl, held)
  if (unusable.length === 0) return result
  const warning = `no item has a field for these filters, or several could be meant: ${unusable.join(', ')}`
  return { ...result, message: `${result.message}; ${warning}` }
}

/** Query parameters of lists that no item has a field for: the mirror cannot answer them, and says so. */
function unusableFilters({ walks }: Crawl): string[] {
  return [...walks.walked.values()]
    .filter(({ facets }) => facets.names().length > 0)
    .flatMap(({ path, facets }) => facets.unusable().map((param) => `${path}?${param}`))
}

function incompleteOf({ walked }: Walks): Crawl['incomplete'] {
  const lists = [...walked.values()]
  return new Map(
    lists.flatMap(({ path, frame: { partial } }): [string, string][] =>
      partial === undefined ? [] : [[path, partial]],
    ),
  )
}

function readScope(context: CatalogContext, walks: Walks): Scope {
  const { config, source, store } = context
  const subscriptions = { count: 0, unresolved: new Map<string, string>() }
  if (source === 'identity') return { images: [], tags: [], packages: [], subscriptions }
  const items = (name: string) => () => itemsOf(context, walks, resourceNamed(name))
  const input = {
    subscriptions: items('subscriptions'),
    images: items('images'),
    tags: items('tags'),
    packages: items('packages'),
  }
  return scopeOf(config.catalog, input, (owner) => store.hasAnswers(owner))
}

function itemTasks(context: CatalogContext, walks: Walks, scope: Scope): Task[] {
  const tasks: Task[] = []
  const { images, tags, packages } = scope
  const scoped: Record<string, Scope['tags']> = { images, tags, packages }
  for (const resource of resourcesOf(context)) {
    const { name, item, list, artifacts } = resource
    if (list === null && item !== null) tasks.push(taskAlone(resource, item))
    else if (item !== null || artifacts.length > 0) {
      const items = scoped[name] ?? (list === null ? [] : itemsOf(context, walks, resource))
      for (const { id, sha } of items) tasks.push(...tasksOfItem(resource, id, sha))
    }
  }
  if (context.source === 'catalog' && context.has('catalog')) {
    const listed = itemsOf(context, walks, resourceNamed('packages'))
    tasks.push(...releaseTasks(scope.packages, listed))
  }
  return tasks
}

/** Artifact sets that what is held names, or that the settings list; each is asked for when anything that names it changed. */
function mentionTasks(context: CatalogContext, { wanted, focus }: Crawl): Task[] {
  if (context.source !== 'catalog') return []
  const avrs = resourceNamed('avrs')
  const owners = new Map<string, string>()
  for (const { owner, ownerSha } of wanted.values())
    if (!owners.has(owner)) owners.set(owner, `${owner} ${ownerSha.toString('hex')}`)
  const naming = new Map<string, string[]>()
  for (const [id, owner] of context.store.listMentions()) {
    const sha = owners.get(owner)
    if (sha === undefined) continue
    naming.set(id, [...(naming.get(id) ?? []), sha])
    if (focus.covers({ owner })) focus.add(`${avrs.name}/${id}`)
  }
  const named = [...naming].flatMap(([id, shas]) => tasksOfItem(avrs, id, digestOf(shas)))
  const listed = context.config.catalog.avrIds.filter((id) => !naming.has(id))
  return [...named, ...listed.flatMap((id) => taskOfDay(avrs, id, context.now()))]
}
