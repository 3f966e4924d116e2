import { createHash } from 'node:crypto'
import { canonicalPath } from '../../domain/path-templates.ts'
import { ownsResource } from '../../domain/resources.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { StoredAnswer } from '../../store/catalog/answers.ts'
import type { Reads } from '../../store/reads.ts'
import type { SyncResult } from '../context.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl } from './crawl.ts'
import { quarantinePath } from './guard.ts'
import { resourcesOf } from './lists/walk.ts'
import { recordArrivals } from './new-tags.ts'
import { isNarrow } from './scope/refresh-scope.ts'

/** One transaction: lists, answers and what is gone, and the snapshot that describes them. Nothing changed, no write. */
export async function publishCatalog(
  context: CatalogContext,
  crawl: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
): Promise<SyncResult> {
  const { store, facts, dryRun, source } = context
  const gone = [...held.values()].filter((answer) => isGone(context, crawl, answer))
  const lists = [...crawl.walks.walked.values()].filter(({ changed }) => changed)
  const goneLists = store
    .listCatalogLists()
    .filter(({ path, resource }) => isOurs(context, resource) && !crawl.wantedLists.has(path))
  facts['removed'] = gone.length
  facts['lists'] = lists.length
  const moved = lists.length + goneLists.length + gone.length + crawl.fetched
  const whole = isWhole(crawl)
  const before = store.readSnapshot(context.source)
  const asOf = confirmedAt(context, crawl)
  if (dryRun) return foreseen(context, crawl, asOf, lists.length)
  let unpublished = 0
  for (const path of store.eachFetchedPath()) if (crawl.wanted.has(path)) unpublished++
  if (moved + unpublished === 0 && before?.whole === whole) {
    await store.exclusive(() => confirm(context, crawl))
    await settleQuarantine(context)
    return ended(context, crawl, asOf, 0)
  }
  await store.transaction(() => {
    recordArrivals(context, crawl.walks)
    for (const { path, resource, frame, facets } of lists) {
      const names = facets.names()
      store.replaceCatalogList(path, resource.name, JSON.stringify(frame), names, context.now())
      if (!facets.isSettled()) store.rereadFacets(path, (body) => facets.read(parseBody(body)))
    }
    for (const { path } of goneLists) store.removeCatalogList(path)
    for (const { path } of gone) store.removeAnswer(path)
    store.publishFetched(
      (resource) => ownsResource(source, resource),
      (path) => crawl.wanted.has(path),
      context.now(),
    )
    confirm(context, crawl)
    // The other source may have documents in hand that no answer names yet.
    if (source === 'catalog') facts['documentsDropped'] = store.sweepDocuments()
    if (!isNarrow(context)) store.supersedeQuarantines(quarantinePath(source), context.now())
    writeSnapshot(context, asOf ?? before?.asOf ?? oldestWalk(context, crawl), whole)
    return Promise.resolve({ commit: true })
  })
  return ended(context, crawl, asOf, moved)
}

/** An item's fields; it was checked when it was staged. */
function parseBody(body: Buffer): Record<string, unknown> {
  return JSON.parse(body.toString('utf8')) as Record<string, unknown>
}

/** Whether everything is held that the scope wants, whichever run looked for it. */
function isWhole({ lacking, incomplete, subscriptions, left }: Crawl): boolean {
  const missing = lacking.size + incomplete.size + left.lacking.size + left.unseen
  return missing + subscriptions.unresolved.size === 0
}

/**
 * Upstream's clock when it confirmed the whole; null while one of the fixed lists could not be had, and for a refresh, which
 * does not look at all of them.
 */
function confirmedAt(context: CatalogContext, { walks }: Crawl): number | null {
  if (isNarrow(context)) return null
  const fixed = resourcesOf(context).flatMap(({ list }) =>
    list === null ? [] : [canonicalPath(list.path) ?? list.path],
  )
  if (fixed.some((path) => walks.failed.has(path))) return null
  return oldestWalk(context, { walks })
}

function oldestWalk({ now }: CatalogContext, { walks }: Pick<Crawl, 'walks'>): number {
  return Math.min(...[...walks.walked.values()].map((walk) => walk.asOf), now())
}

/** Users are personal data: with the setting off, no source of their own would take them away. */
function isOurs({ source, config }: CatalogContext, resource: string): boolean {
  if (ownsResource(source, resource)) return true
  return resource === 'users' && !config.identity.mirrorUsers
}

/** Upstream is back at what is held, so what was refused is past. */
async function settleQuarantine(context: CatalogContext): Promise<void> {
  const { store, source, now } = context
  if (isNarrow(context)) return // what was refused may lie where it did not look
  const path = quarantinePath(source)
  if (store.listOpenQuarantines().some((open) => open.path === path))
    await store.exclusive(() => store.supersedeQuarantines(path, now()))
}

/** When lists and answers were seen to be as they are, and what was not to be seen: nothing that is served changes but its age. */
function confirm(context: CatalogContext, crawl: Crawl): void {
  const { store } = context
  store.confirmLists([...crawl.walks.walked.values()].map(({ path, asOf }) => [path, asOf]))
  for (const { canonical, at, ...by } of crawl.confirmed) store.confirmAnswer(canonical, by, at)
  recordMissing(context, crawl)
}

function recordMissing(
  { store, source }: CatalogContext,
  { lacking, incomplete, wanted, left }: Crawl,
): void {
  const paths = [...incomplete.keys(), ...lacking.keys()].map((path): [string, string] => [
    path,
    wanted.get(path)?.resource ?? (source === 'identity' ? 'users' : 'lists'),
  ])
  store.replaceMissingPaths(
    (resource) => ownsResource(source, resource),
    new Map([...left.lacking, ...paths]),
  )
}

/** An answer that nothing wants any more. While its owner's list cannot be had, nobody knows: it stays. */
function isGone({ source }: CatalogContext, crawl: Crawl, { path, owner }: StoredAnswer): boolean {
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

/** What a run that stores nothing has to tell. */
function foreseen(
  context: CatalogContext,
  crawl: Crawl,
  asOf: number | null,
  lists: number,
): SyncResult {
  const { due = 0, removed } = context.facts
  const told = `dry run: ${lists} lists changed, ${String(due)} answers to fetch, ${String(removed)} to remove; nothing was stored`
  return { ...ended(context, crawl, asOf, 0), message: told }
}

function ended(
  { facts }: CatalogContext,
  crawl: Crawl,
  asOf: number | null,
  moved: number,
): SyncResult {
  const { lacking, fetched, incomplete, pending, left } = crawl
  const told =
    moved === 0
      ? 'nothing changed'
      : `${Number(facts['lists'] ?? 0)} lists changed, ${fetched} answers fetched, ${String(facts['removed'])} removed`
  if (isWhole(crawl)) return { outcome: 'complete', asOf, message: told }
  const leftAlone = left.lacking.size + left.unseen
  if (leftAlone > 0) facts['leftAlone'] = leftAlone
  const rest = leftAlone === 0 ? '' : `; ${leftAlone} that are not held were left to the next sync`
  if (lacking.size > 0) {
    facts['lacking'] = lacking.size
    facts['lackingIds'] = reasonsOf(lacking, 20)
  }
  if (incomplete.size > 0) {
    facts['incomplete'] = incomplete.size
    facts['incompleteLists'] = reasonsOf(incomplete, 20)
  }
  if (pending.size > 0) facts['pending'] = pending.size
  const making =
    pending.size === 0 ? '' : `, ${pending.size} of them still being made by the service`
  const lacks = lacking.size === 0 ? '' : `; ${lacking.size} could not be had${making}`
  const cut = incomplete.size === 0 ? '' : `; ${listsNamed(incomplete)}`
  const unclear = unresolvedNamed(crawl, facts)
  return { outcome: 'partial', asOf, message: `${told}${lacks}${cut}${unclear}${rest}` }
}

/** How many subscriptions were understood. Which were not, and why, is a fact: they name private things. */
function unresolvedNamed({ subscriptions }: Crawl, facts: CatalogContext['facts']): string {
  const { count, unresolved } = subscriptions
  if (unresolved.size === 0) return ''
  const understood = `${count - unresolved.size} of ${count}`
  facts['subscriptionsUnderstood'] = understood
  facts['subscriptionsNotUnderstood'] = reasonsOf(unresolved, 20)
  return `; subscriptions understood: ${understood} (subscriptionsNotUnderstood in "patchmirror runs" has the others; until they are understood, nothing leaves the scope by them)`
}

function reasonsOf(paths: ReadonlyMap<string, string>, count: number): string[] {
  return [...paths].slice(0, count).map(([path, why]) => `${path}: ${why}`)
}

/** The lists that are not known to be whole, the first three with the reason. */
function listsNamed(incomplete: Crawl['incomplete']): string {
  const lists = incomplete.size === 1 ? '1 list is' : `${incomplete.size} lists are`
  return `${lists} not known to be complete: ${reasonsOf(incomplete, 3).join('; ')}`
}

/** Digest of all that a source serves of the catalog, hex: lists, their items in order, answers and the documents named. */
export function digestOfCatalog(
  reads: Pick<Reads, 'eachCatalogDigest' | 'eachEntryDigest'>,
  source: SourceName,
): string {
  const own = (resource: string): boolean => ownsResource(source, resource)
  const hash = createHash('sha256')
  for (const [path, text, resource] of reads.eachCatalogDigest())
    if (own(resource)) hash.update(`${path} ${text}\n`)
  for (const [path, sha, resource] of reads.eachEntryDigest())
    if (own(resource)) hash.update(path).update(sha)
  return hash.digest('hex')
}
