import { counted } from '../../base/text.ts'
import { ownsResource, listPathOf } from '../../base/domain/resources.ts'
import { parseItem } from '../../store/catalog/lists.ts'
import type { SyncResult } from '../context.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import { noteDoubts, publishedDoubts } from '../doubts.ts'
import type { ArtifactVerdict, Removed } from './artifacts-guard.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl } from './crawl.ts'
import { digestOfCatalog } from './digest.ts'
import { quarantinePath } from './guard.ts'
import { resourcesOf } from './lists/walk.ts'
import { recordArrivals } from './new-tags.ts'
import { noteRemovals, removalWords } from './removals.ts'
import { isNarrow } from './scope/refresh-scope.ts'

/** What the guard said of the artifacts, and the approval that the run applies. */
interface Admitted {
  readonly artifacts: ArtifactVerdict | null
  readonly approved: Quarantine | null
}

/** Publishes a run in one transaction: lists, answers, removals and the snapshot. Writes only what changed. */
export async function publishCatalog(
  context: CatalogContext,
  crawl: Crawl,
  { artifacts, approved, removed: { answers: gone, items } }: Admitted & { removed: Removed },
): Promise<SyncResult> {
  const { store, facts, dryRun, source } = context
  const lists = [...crawl.walks.walked.values()].filter(({ changed }) => changed)
  const goneLists = listsOutOfScope(context, crawl)
  const removals = { answers: gone, lists: goneLists }
  noteRemovals(facts, removals)
  facts['lists'] = lists.length
  const removed = removalWords({ ...removals, removed: items })
  const moved = lists.length + goneLists.length + gone.length + crawl.fetched
  const whole = isWhole(crawl)
  const before = store.snapshots.readSnapshot(context.source)
  const asOf = confirmedAt(context, crawl)
  if (dryRun) return dryRunResult(context, crawl, asOf, { lists: lists.length, removed })
  let unpublished = 0
  let mayDrop = !isNarrow(context) || gone.length > 0 || crawl.droppedFetched
  for (const path of store.catalog.eachFetchedPath()) {
    if (crawl.wanted.has(path)) unpublished++
    mayDrop ||= store.catalog.replacesLinks(path)
  }
  if (moved + unpublished === 0 && before?.whole === whole) {
    await store.exclusive(() => confirm(context, crawl))
    await settleQuarantine(context)
    return resultOf(context, crawl, asOf, null)
  }
  context.collectHeap()
  await store.transaction(() => {
    const last = store.changes.lastLogged()
    recordArrivals(context, crawl.walks)
    for (const { path, resource, frame, facets } of lists) {
      const names = facets.names()
      store.catalog.replaceList(path, resource.name, JSON.stringify(frame), names, context.now())
      if (!facets.isSettled()) store.catalog.rereadFacets(path, (body) => facets.read(parseItem(body)))
    }
    for (const { path } of goneLists) store.catalog.removeList(path)
    for (const { path } of gone) store.catalog.removeAnswer(path)
    store.catalog.publishFetched(
      (resource) => ownsResource(source, resource),
      (path) => crawl.wanted.has(path),
      context.now(),
    )
    confirm(context, crawl)
    // A refresh that only adds, or replaces what links to no document, has nothing to drop. The other source may have fetched documents that no published answer links to yet.
    if (source === 'catalog' && mayDrop) facts['documentsDropped'] = store.catalog.sweepDocuments()
    if (approved !== null) store.quarantine.decideQuarantine(approved.runId, 'approved', context.now())
    if (!isNarrow(context)) store.quarantine.supersedeQuarantines(quarantinePath(source), context.now())
    writeSnapshot(context, asOf ?? before?.asOf ?? oldestWalk(context, crawl), whole)
    accountFor(context, last, { artifacts, approved })
    return Promise.resolve({ commit: true })
  })
  const result = resultOf(context, crawl, asOf, moved === 0 ? null : removed)
  return withDoubts(result, publishedDoubts(artifacts?.verdict ?? null, approved !== null))
}

function listsOutOfScope(context: CatalogContext, { wantedLists }: Crawl) {
  const isGone = (path: string, resource: string): boolean =>
    removesResource(context, resource) && !wantedLists.has(path)
  return context.store.catalog.listLists().filter(({ path, resource }) => isGone(path, resource))
}

function withDoubts(result: SyncResult, doubts: string | null): SyncResult {
  return doubts === null ? result : { ...result, message: `${result.message}; ${doubts}` }
}

/** Accounts for what the guard said, and notes what is doubtful in the log. */
function accountFor(context: CatalogContext, last: number, { artifacts, approved }: Admitted): void {
  artifacts?.account()
  if (artifacts !== null) noteDoubts(context, last, [artifacts.verdict], { isApproved: approved !== null })
}

/** Returns whether everything in scope is stored, by whichever run fetched it. */
function isWhole({ missing, incomplete, subscriptions, carriedOver }: Crawl): boolean {
  const count = missing.size + incomplete.size + carriedOver.missing.size + carriedOver.unrequested
  return count + subscriptions.unresolved.size === 0
}

/**
 * Returns upstream's date of its confirmation of the whole catalog; null for a refresh, which does not walk all lists,
 * and while a fixed list fails that is served from what is stored.
 */
function confirmedAt(context: CatalogContext, { walks }: Crawl): number | null {
  if (isNarrow(context)) return null
  const fixed = resourcesOf(context).flatMap((resource) => (resource.list === null ? [] : [listPathOf(resource)]))
  const isUnknown = (path: string): boolean => walks.failed.has(path) && !walks.ownFailures.has(path)
  if (fixed.some(isUnknown)) return null
  return oldestWalk(context, { walks })
}

function oldestWalk({ now }: CatalogContext, { walks }: Pick<Crawl, 'walks'>): number {
  return Math.min(...[...walks.walked.values()].map((walk) => walk.asOf), now())
}

/**
 * Returns whether this source removes a resource. It also removes users while their setting is off, because no source
 * of their own runs then and users are personal data.
 */
function removesResource({ source, config }: CatalogContext, resource: string): boolean {
  if (ownsResource(source, resource)) return true
  return resource === 'users' && !config.identity.mirrorUsers
}

/** Closes the open quarantine: upstream serves the stored state again. */
async function settleQuarantine(context: CatalogContext): Promise<void> {
  const { store, source, now } = context
  if (isNarrow(context)) return // a refresh may not have walked the quarantined part
  const path = quarantinePath(source)
  if (store.quarantine.listOpenQuarantines().some((open) => open.path === path))
    await store.exclusive(() => store.quarantine.supersedeQuarantines(path, now()))
}

/**
 * Stores the confirmation dates of lists and answers, and what is missing; nothing that is served changes except
 * ages.
 */
function confirm(context: CatalogContext, crawl: Crawl): void {
  const { store } = context
  const walked = [...crawl.walks.walked.values()]
  store.catalog.confirmLists(walked.map(({ path, asOf }) => [path, asOf]))
  store.catalog.noteEvidence(walked.map(({ path, evidence }) => [path, JSON.stringify(evidence)]))
  for (const { canonical, at, ...by } of crawl.confirmed) store.catalog.confirmAnswer(canonical, by, at)
  recordMissing(context, crawl)
}

function recordMissing(
  { store, source }: CatalogContext,
  { missing, incomplete, wanted, forbidden, none, carriedOver }: Crawl,
): void {
  const paths = [...incomplete, ...missing].map(([path, reason]) => ({
    path,
    resource: wanted.get(path)?.resource ?? (source === 'identity' ? 'users' : 'lists'),
    reason,
    status: forbidden.has(path) ? 403 : (none.get(path) ?? null),
  }))
  store.catalog.replaceMissingPaths(
    (resource) => ownsResource(source, resource),
    [...carriedOver.missing.values(), ...paths],
  )
}

function writeSnapshot({ store, source, runId, now }: CatalogContext, asOf: number, whole: boolean): void {
  const own = store.catalog.listLists().filter(({ resource }) => ownsResource(source, resource))
  const records = own.reduce((sum, { entries }) => sum + entries, 0)
  store.snapshots.replaceSnapshot({
    source,
    id: digestOfCatalog(store, source),
    runId,
    publishedAt: now(),
    asOf,
    records,
    whole,
  })
}

/** Returns the result of a dry run, with the changes that a run would make. */
function dryRunResult(
  context: CatalogContext,
  crawl: Crawl,
  asOf: number | null,
  { lists, removed }: { lists: number; removed: string },
): SyncResult {
  const { due = 0 } = context.facts
  const summary = `dry run: ${counted(lists, 'list')} changed, ${counted(Number(due), 'answer')} to fetch, ${removed} to remove; nothing was stored`
  return { ...resultOf(context, crawl, asOf, null), message: summary }
}

/** Returns the result of a run; `removed`: what it removed, in words, and null where nothing changed at all. */
function resultOf({ facts }: CatalogContext, crawl: Crawl, asOf: number | null, removed: string | null): SyncResult {
  const { missing, fetched, incomplete, forbidden, pending, carriedOver } = crawl
  const summary =
    removed === null
      ? 'nothing changed'
      : `${counted(Number(facts['lists'] ?? 0), 'list')} changed, ${counted(fetched, 'answer')} fetched, ${removed} removed`
  if (isWhole(crawl)) return { outcome: 'complete', asOf, message: summary }
  const leftAlone = carriedOver.missing.size + carriedOver.unrequested
  if (leftAlone > 0) facts['leftAlone'] = leftAlone
  const rest =
    leftAlone === 0 ? '' : `; ${counted(leftAlone, 'missing one is', 'missing ones are')} left to the next sync`
  if (missing.size > 0) {
    facts['lacking'] = missing.size
    facts['lackingIds'] = reasonsOf(missing, 20)
  }
  if (incomplete.size > 0) {
    facts['incomplete'] = incomplete.size
    facts['incompleteLists'] = reasonsOf(incomplete, 20)
  }
  if (pending.size > 0) facts['pending'] = pending.size
  if (forbidden.size > 0) facts['forbidden'] = forbidden.size
  const pendingNote = pending.size === 0 ? '' : `, ${pending.size} of them still being built by the service`
  const forbiddenNote = forbidden.size === 0 ? '' : `, ${forbidden.size} of them refused to the credential (403)`
  const missingNote = missing.size === 0 ? '' : `; ${missing.size} could not be fetched${pendingNote}${forbiddenNote}`
  const cut = incomplete.size === 0 ? '' : `; ${incompleteNote(incomplete)}`
  const subscriptionsText = subscriptionsNote(crawl, facts)
  return {
    outcome: 'partial',
    asOf,
    message: `${summary}${missingNote}${cut}${subscriptionsText}${rest}`,
  }
}

/**
 * Returns the number of understood subscriptions for the message. The others are recorded as a fact, because they
 * contain private names.
 */
function subscriptionsNote({ subscriptions }: Crawl, facts: CatalogContext['facts']): string {
  const { count, unresolved } = subscriptions
  if (unresolved.size === 0) return ''
  const understood = `${count - unresolved.size} of ${count}`
  facts['subscriptionsUnderstood'] = understood
  facts['subscriptionsNotUnderstood'] = reasonsOf(unresolved, 20)
  return `; subscriptions understood: ${understood} (the others are in subscriptionsNotUnderstood of "patchmirror runs"; until they are understood, nothing is removed from the scope)`
}

function reasonsOf(paths: ReadonlyMap<string, string>, count: number): string[] {
  const first = [...paths].slice(0, count)
  return first.map(([path, why]) => (why.startsWith(`${path}: `) ? why : `${path}: ${why}`))
}

/** Names the lists that are not known to be complete, the first three with the reason. */
function incompleteNote(incomplete: Crawl['incomplete']): string {
  return `${counted(incomplete.size, 'list is', 'lists are')} not known to be complete: ${reasonsOf(incomplete, 3).join('; ')}`
}
