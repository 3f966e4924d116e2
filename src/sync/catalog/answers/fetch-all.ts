import { messageOf, MirrorError } from '../../../base/errors.ts'
import { isAddressable } from '../../../base/domain/path-templates.ts'
import { type StoredAnswer, type StoredAnswers, isNone } from '../../../store/catalog/answers.ts'
import { isForbidden, statusOf } from '../../../upstream/http/errors.ts'
import type { CatalogContext } from '../context.ts'
import type { Crawl, RefreshScope } from '../crawl.ts'
import { fetchAnswer } from './fetch.ts'
import { type HostFailures, createHostFailures } from './host-failures.ts'
import { type Task, isAlwaysDue, mustExist, absenceDigest, unaddressable } from './plan.ts'
import { contradictedLoss, isEmptied } from './releases.ts'
import { isFatal } from '../lists/walk.ts'
import { isForeign } from '../unsure.ts'
import { runPool } from '../../../base/pacing.ts'

/** Answers after which the size of the heap is looked at. */
const COLLECT_AFTER = 500

/**
 * Fetches the due tasks with bounded concurrency and stores each answer immediately. Records failures in the crawl.
 * Throws errors that affect every request: a refused credential, a full disk, an abort.
 */
export async function fetchAll(
  context: CatalogContext,
  crawl: Crawl,
  stored: StoredAnswers,
  tasks: readonly Task[],
): Promise<void> {
  const { source, store, config, facts } = context
  for (const task of tasks) crawl.wanted.set(task.canonical, task)
  const stale: string[] = []
  const missing = new Map(store.catalog.listMissingPaths().map(({ path, status }) => [path, status]))
  // Upstream may name the artifact sets again whose removal the guard refused.
  const poorer = new Set(store.catalog.listLostMentions().map(([, , path]) => path))
  const due = tasks.filter((task) => {
    if (!crawl.refreshScope.covers(task)) return false // a refresh covers few of many thousands
    const { canonical } = task
    const fetched = store.catalog.readFetched(canonical)
    // What the last run could not have is asked for, also where something older is stored; once, while a decision is awaited.
    const isMissing = missing.get(canonical) === 403 || (fetched === null && missing.has(canonical))
    const isAsked =
      isMissing || poorer.has(canonical) || isDue(context, crawl.refreshScope, task, fetched, stored.get(canonical))
    if (!isAsked) return false
    if (fetched !== null) stale.push(canonical)
    return true
  })
  for (const { canonical } of due) crawl.requested.add(canonical)
  if (context.dryRun) {
    facts['due'] = Number(facts['due'] ?? 0) + due.length
    return
  }
  if (stale.length > 0) {
    await store.exclusive(() => store.catalog.dropFetched(stale))
    crawl.droppedFetched = true
  }
  const failures = createHostFailures()
  const total = due.length
  await runPool(due, config.catalog.concurrency, async (task, done) => {
    context.progress({ source, phase: 'items', unit: 'items', done, total })
    if (done > 0 && done % COLLECT_AFTER === 0) context.collectHeap()
    const reason = failures.skipReason(task)
    if (reason !== null) crawl.missing.set(task.canonical, reason)
    else await fetchOne(context, crawl, stored.get(task.canonical) ?? null, task, failures)
  })
}

type Known = Pick<StoredAnswer, 'ownerSha' | 'status'> | null | undefined

/**
 * Returns whether an answer that the run covers is due: its owner changed, no digest shows whether it changed, a missing one was last
 * requested on an earlier day, or a missing one's owner is named by an event.
 */
function isDue({ full, now }: CatalogContext, scope: RefreshScope, task: Task, fetched: Known, stored: Known): boolean {
  const known = fetched ?? (full ? null : (stored ?? null))
  if (known === null || isAlwaysDue(task)) return true
  // Upstream may have restored an answer whose removal the guard refused.
  if (isNone(fetched) && stored?.status === 200) return true
  if (!isNone(known)) return !known.ownerSha.equals(task.ownerSha)
  return mustExist(task) || scope.names(task) || !known.ownerSha.equals(absenceDigest(task.ownerSha, now()))
}

async function fetchOne(
  context: CatalogContext,
  crawl: Crawl,
  stored: StoredAnswer | null,
  task: Task,
  failures: HostFailures,
): Promise<void> {
  const { store } = context
  try {
    if (!isAddressable(task.path)) throw unaddressable(task.path)
    const { answer, at, left, form } = await fetchAnswer(context, task, stored)
    failures.recordSuccess(task)
    if (left.length > 0) crawl.linksLeft.set(task.canonical, left.join('; '))
    if (answer === null) {
      crawl.confirmed.push({ ...task, at })
      return
    }
    if (isNone(answer) && mustExist(task)) {
      // The list still names it, and only the list decides on removal: the stored answer stays.
      crawl.missing.set(task.canonical, 'upstream lists it but answers 404')
      if (stored !== null) return
    }
    const ownerSha = isNone(answer) ? absenceDigest(task.ownerSha, context.now()) : answer.ownerSha
    if (isNone(answer) && stored?.status === answer.status) {
      crawl.confirmed.push({ ...task, ownerSha, at }) // still absent
      return
    }
    const fetched = { ...answer, ownerSha }
    const isStored = stored?.status === 200
    const isUnsure = isNone(answer)
      ? isStored || task.surface === 'catalog' || isForeign(form)
      : isEmptied(context, task, answer) || contradictedLoss(context, task, answer) !== null
    if (isUnsure && !mustExist(task)) {
      crawl.unsure.push({ task, answer: fetched, form, isStored })
      return
    }
    await context.keep(() => store.catalog.keepFetched(fetched))
    crawl.fetched++
  } catch (error) {
    context.session.signal.throwIfAborted()
    if (!(error instanceof MirrorError) || isFatal(error)) throw error
    const isPending = statusOf(error) === 202
    if (isForbidden(error)) crawl.forbidden.add(task.canonical)
    if (isPending) crawl.pending.add(task.canonical)
    else failures.recordFailure(task, error)
    const pendingNote = 'the service is still building it, and the next run requests it again: '
    crawl.missing.set(task.canonical, (isPending ? pendingNote : '') + messageOf(error))
  }
}
