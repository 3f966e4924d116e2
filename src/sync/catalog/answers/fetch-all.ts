import { messageOf, MirrorError } from '../../../core/errors.ts'
import { isAddressable } from '../../../domain/path-templates.ts'
import { type StoredAnswer, isNone } from '../../../store/catalog/answers.ts'
import { statusOf } from '../../../upstream/http/errors.ts'
import type { CatalogContext } from '../context.ts'
import type { Crawl, Focus } from '../crawl.ts'
import { fetchAnswer } from './fetch.ts'
import { type Patience, createPatience } from './patience.ts'
import { type Task, isAlone, mustExist, noneStamp, unaddressable } from './plan.ts'
import { isFatal } from '../lists/walk.ts'
import { runPool } from '../../../core/pool.ts'

/**
 * Fetches what is due of the tasks, a bounded number at a time, and keeps each answer at once. What cannot be had is
 * told in the crawl. Throws what is true of every request: a refused credential, a full disk, the signal.
 */
export async function fetchAll(
  context: CatalogContext,
  crawl: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
  tasks: readonly Task[],
): Promise<void> {
  const { source, store, config, facts } = context
  for (const task of tasks) crawl.wanted.set(task.canonical, task)
  const due = tasks.filter((task) =>
    isDue(context, crawl.focus, task, store.readFetched(task.canonical), held.get(task.canonical)),
  )
  for (const { canonical } of due) crawl.tried.add(canonical)
  if (context.dryRun) {
    facts['due'] = Number(facts['due'] ?? 0) + due.length
    return
  }
  const paths = due.map(({ canonical }) => canonical)
  const stale = paths.filter((path) => store.readFetched(path) !== null)
  if (stale.length > 0) await store.exclusive(() => store.dropFetched(stale))
  const patience = createPatience()
  const total = due.length
  await runPool(due, config.catalog.concurrency, async (task, done) => {
    context.progress({ source, phase: 'items', unit: 'items', done, total })
    const reason = patience.lost(task)
    if (reason !== null) crawl.lacking.set(task.canonical, reason)
    else await fetchOne(context, crawl, held.get(task.canonical) ?? null, task, patience)
  })
}

type Known = Pick<StoredAnswer, 'ownerSha' | 'status'> | null | undefined

/**
 * Whether an answer is to be fetched: its owner changed, nothing tells whether it did, there was none a day ago, or there
 * was none and an event names the owner.
 */
function isDue(
  { full, now }: CatalogContext,
  focus: Focus,
  task: Task,
  inHand: Known,
  held: Known,
): boolean {
  if (!focus.covers(task)) return false
  const known = inHand ?? (full ? null : (held ?? null))
  if (known === null || isAlone(task)) return true
  // A loss that a guard refused may be over by now.
  if (isNone(inHand) && held?.status === 200) return true
  if (!isNone(known)) return !known.ownerSha.equals(task.ownerSha)
  return (
    mustExist(task) || focus.names(task) || !known.ownerSha.equals(noneStamp(task.ownerSha, now()))
  )
}

async function fetchOne(
  context: CatalogContext,
  crawl: Crawl,
  held: StoredAnswer | null,
  task: Task,
  patience: Patience,
): Promise<void> {
  const { store, config } = context
  try {
    if (!isAddressable(task.path)) throw unaddressable(task.path)
    const { answer, at } = await fetchAnswer(context, task, held)
    patience.had(task)
    if (answer === null) {
      crawl.confirmed.push({ ...task, at })
      return
    }
    if (isNone(answer) && mustExist(task)) {
      // Listed, so only the list decides that it is gone; what is held stays.
      crawl.lacking.set(task.canonical, 'upstream lists it but answers 404')
      if (held !== null) return
    }
    const ownerSha = isNone(answer) ? noneStamp(task.ownerSha, context.now()) : answer.ownerSha
    if (isNone(answer) && held?.status === answer.status) {
      crawl.confirmed.push({ ...task, ownerSha, at }) // still none
      return
    }
    const keep = (): void => store.keepFetched({ ...answer, ownerSha })
    await store.gathered(config.catalog.concurrency, keep)
    crawl.fetched++
  } catch (error) {
    context.session.signal.throwIfAborted()
    if (!(error instanceof MirrorError) || isFatal(error)) throw error
    const isPending = statusOf(error) === 202
    if (isPending) crawl.pending.add(task.canonical)
    else patience.lacked(task, error)
    const making = 'it is still being made by the service, and the next run asks again: '
    crawl.lacking.set(task.canonical, (isPending ? making : '') + messageOf(error))
  }
}
