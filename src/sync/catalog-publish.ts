import { ownsResource } from '../resources.ts'
import type { HeldAnswer } from '../store/catalog-answers.ts'
import type { CatalogContext } from './catalog-context.ts'
import { digestOfCatalog } from './catalog-digest.ts'
import type { Crawl } from './catalog-crawl.ts'
import type { SyncResult } from './context.ts'

/** One transaction: lists, answers and what is gone, and the snapshot that describes them. Nothing changed, no write. */
export async function publishCatalog(
  context: CatalogContext,
  crawl: Crawl,
  held: ReadonlyMap<string, HeldAnswer>,
): Promise<SyncResult> {
  const { store, facts, dryRun, source } = context
  const gone = [...held.values()].filter((answer) => isGone(context, crawl, answer))
  const lists = [...crawl.walks.walked.values()].filter(({ changed }) => changed)
  const goneLists = store
    .listCatalogLists()
    .filter(({ path, resource }) => ownsResource(source, resource) && !crawl.wantedLists.has(path))
  facts['removed'] = gone.length
  facts['lists'] = lists.length
  const asOf = Math.min(...[...crawl.walks.walked.values()].map((walk) => walk.asOf), context.now())
  const moved = lists.length + goneLists.length + gone.length + crawl.fetched
  const whole = crawl.lacking.size === 0
  const before = store.readSnapshot(context.source)
  if (dryRun) return ended(context, crawl, asOf, moved)
  const unpublished = [...store.listFetched().keys()].filter((path) =>
    crawl.wanted.has(path),
  ).length
  if (moved + unpublished === 0 && before?.whole === whole) {
    if (crawl.confirmed.length > 0 || !whole) await confirm(context, crawl)
    return ended(context, crawl, asOf, 0)
  }
  await store.transaction(() => {
    for (const { path, resource, frame } of lists)
      store.replaceCatalogList(path, resource.name, JSON.stringify(frame), context.now())
    for (const { path } of goneLists) store.removeCatalogList(path)
    for (const { path } of gone) store.removeAnswer(path)
    store.publishFetched(
      (resource) => ownsResource(source, resource),
      (path) => crawl.wanted.has(path),
      context.now(),
    )
    for (const { canonical, ownerSha } of crawl.confirmed) store.confirmAnswer(canonical, ownerSha)
    rememberLacking(context, crawl)
    facts['documentsDropped'] = store.sweepDocuments()
    writeSnapshot(context, asOf, whole)
    return Promise.resolve({ commit: true })
  })
  await store.exclusive(() => {
    for (const path of crawl.walks.walked.keys()) store.catalogStaging.dropWalk(path)
  })
  return ended(context, crawl, asOf, moved)
}

/** The same answers under owners that are listed anew: nothing that is served changes. */
async function confirm(context: CatalogContext, crawl: Crawl): Promise<void> {
  const { store } = context
  await store.exclusive(() => {
    for (const { canonical, ownerSha } of crawl.confirmed) store.confirmAnswer(canonical, ownerSha)
    rememberLacking(context, crawl)
  })
}

function rememberLacking({ store, source }: CatalogContext, { lacking, wanted }: Crawl): void {
  const paths = [...lacking.keys()].map((path): [string, string] => [
    path,
    wanted.get(path)?.resource ?? (source === 'identity' ? 'users' : 'lists'),
  ])
  store.replaceLacking((resource) => ownsResource(source, resource), new Map(paths))
}

/** An answer that nothing wants any more. While its owner's list cannot be had, nobody knows: it stays. */
function isGone({ source }: CatalogContext, crawl: Crawl, { path, owner }: HeldAnswer): boolean {
  if (!ownsResource(source, owner.split('/', 1)[0] ?? '')) return false
  return !crawl.wanted.has(path)
}

function writeSnapshot(
  { store, source, runId, now }: CatalogContext,
  asOf: number,
  whole: boolean,
): void {
  const own = store.listCatalogLists().filter(({ resource }) => ownsResource(source, resource))
  const records = own.reduce((sum, { entries }) => sum + entries, 0)
  store.replaceSnapshot({
    source,
    id: digestOfCatalog(store, source),
    runId,
    publishedAt: now(),
    asOf,
    records,
    whole,
  })
}

function ended({ facts }: CatalogContext, crawl: Crawl, asOf: number, moved: number): SyncResult {
  const { lacking, fetched } = crawl
  const told =
    moved === 0
      ? 'nothing changed'
      : `${fetched} answers fetched, ${String(facts['removed'])} removed`
  if (lacking.size === 0) return { outcome: 'complete', asOf, message: told }
  facts['lacking'] = lacking.size
  facts['lackingIds'] = [...lacking].slice(0, 20).map(([path, why]) => `${path}: ${why}`)
  const message = `${told}; ${lacking.size} could not be had`
  return { outcome: 'partial', asOf, message }
}
