import { MirrorError, messageOf } from '../../../core/errors.ts'
import { fillPath, matchPath } from '../../../domain/path-templates.ts'
import { RELEASES, RESOURCES, ownsResource } from '../../../domain/resources.ts'
import { type StoredAnswer, answerState, isNone } from '../../../store/catalog/answers.ts'
import { statusOf } from '../../../upstream/http/errors.ts'
import type { CatalogContext } from '../context.ts'
import { fetchAnswer } from './fetch.ts'
import { digestOfCatalog } from '../publish.ts'
import { isTimeOf } from './due.ts'
import { type Patience, createPatience } from './patience.ts'
import { type Task, taskOf } from './plan.ts'
import { isFatal, resourcesOf } from '../lists/walk.ts'
import type { SyncResult } from '../../context.ts'
import { runPool } from '../../../core/pool.ts'

/** Answers confirmed in one write: what a killed run loses. */
const BATCH = 50

/**
 * One run of kind `reconcile`: asks again for the answers that may change while their list entries do not (details, the
 * package catalog's answers, VEX), each when its own time has come. It confirms what it asked for and nothing else: lists,
 * scope and removals are left to the syncs.
 */
export async function reconcileCatalog(context: CatalogContext): Promise<SyncResult> {
  const { store, config, facts, dryRun } = context
  const tasks = dueTasks(context)
  facts['due'] = tasks.length
  if (dryRun) return { outcome: 'complete', asOf: null, message: `dry run: ${tasks.length} due` }
  const found: Found = { confirmed: new Map(), changed: [], contradicted: [], failed: [] }
  let confirmed = 0
  const flush = async (): Promise<void> => {
    const batch = [...found.confirmed]
    found.confirmed.clear()
    confirmed += batch.length
    if (batch.length > 0) await store.exclusive(() => store.confirmAnswers(batch))
  }
  const patience = createPatience()
  try {
    await runPool(tasks, config.catalog.concurrency, async ([task, held]) => {
      const reason = patience.lost(task)
      if (reason !== null) found.failed.push(`${task.canonical}: ${reason}`)
      else await askAgain(context, task, held, { found, patience })
      if (found.confirmed.size >= BATCH) await flush()
    })
  } finally {
    await flush()
    await publish(context, found)
  }
  facts['confirmed'] = confirmed
  facts['changed'] = found.changed.length
  if (found.contradicted.length > 0) facts['contradicted'] = found.contradicted.length
  const told =
    tasks.length === 0
      ? 'nothing was due: what a reconcile looks at was confirmed within catalog.reconcileHours'
      : `${confirmed} answers confirmed, ${found.changed.length} changed`
  if (found.failed.length === 0) return { outcome: 'complete', asOf: null, message: told }
  facts['lacking'] = found.failed.length
  facts['lackingIds'] = found.failed.slice(0, 20)
  const message = `${told}; ${found.failed.length} could not be fetched and keep their age`
  return { outcome: 'partial', asOf: null, message }
}

interface Found {
  /** Path and upstream's date, of answers that are as they are stored. */
  confirmed: Map<string, number>
  changed: string[]
  /** Paths that upstream answers 404 or 204 for: the next sync asks again, and its guard decides. */
  contradicted: string[]
  /** Path and reason. */
  failed: string[]
}

async function askAgain(
  context: CatalogContext,
  task: Task,
  held: StoredAnswer,
  { found, patience }: { found: Found; patience: Patience },
): Promise<void> {
  const { store, session } = context
  try {
    const { answer, at } = await fetchAnswer(context, task, held)
    patience.had(task)
    const same = answer === null || answerState(answer) === store.readAnswerState(task.canonical)
    if (same) found.confirmed.set(task.canonical, at)
    else if (isNone(answer)) found.contradicted.push(task.canonical)
    else {
      await store.exclusive(() => store.keepFetched(answer))
      found.changed.push(task.canonical)
    }
  } catch (error) {
    session.signal.throwIfAborted()
    if (!(error instanceof MirrorError) || isFatal(error)) throw error
    if (statusOf(error) !== 202) patience.lacked(task, error) // 202: it is still being made, so the host answers
    found.failed.push(`${task.canonical}: ${messageOf(error)}`)
  }
}

async function publish(context: CatalogContext, found: Found): Promise<void> {
  const { store, source, runId, now } = context
  const before = store.readSnapshot(source)
  if (before === null) return
  if (found.contradicted.length > 0) await store.exclusive(() => store.askAgain(found.contradicted))
  if (found.changed.length === 0) return
  await store.transaction(() => {
    store.publishPaths(found.changed, now())
    store.sweepDocuments()
    const id = digestOfCatalog(store, source)
    store.replaceSnapshot({ ...before, id, runId, publishedAt: now() })
    return Promise.resolve({ commit: true })
  })
}

/** The answers whose time has come, the longest unconfirmed first. */
function dueTasks(context: CatalogContext): [Task, StoredAnswer][] {
  const { store, source, full } = context
  const due: [Task, StoredAnswer][] = []
  for (const held of store.eachStoredAnswer()) {
    if (held.status !== 200 || held.ownerSha.length === 0 || !ownsResource(source, held.resource))
      continue
    if (!full && !isTimeOf(context, held)) continue
    const task = taskFor(context, held)
    if (task !== null) due.push([task, held])
  }
  const inHand = new Set(store.eachFetchedPath()) // of a crawl that was killed: the next sync publishes it
  return due
    .filter(([{ canonical }]) => !inHand.has(canonical))
    .sort(([, one], [, other]) => (one.confirmedAt ?? 0) - (other.confirmedAt ?? 0))
}

/** The task of a stored answer; null for one that cannot change, and for one that the settings leave out. */
function taskFor(
  context: CatalogContext,
  { path, owner, ownerSha, resource }: StoredAnswer,
): Task | null {
  if (resource === 'releases') {
    if (!context.has('catalog')) return null
    const plain = [RELEASES.versions, RELEASES.cves, RELEASES.details]
    if (!plain.some((template) => matchPath(template, path) !== null)) return null
    return taskOf(
      { name: resource, surface: 'catalog', secrets: false },
      path,
      owner,
      ownerSha,
      null,
    )
  }
  const known = RESOURCES.find(({ name }) => name === resource)
  if (known === undefined || !resourcesOf(context).includes(known)) return null
  const templates: [string, 'vex' | null][] = known.artifacts.flatMap((one) =>
    one.document === 'vex' ? [[one.path, 'vex']] : [],
  )
  if (known.item !== null) templates.unshift([known.item, null])
  for (const [template, document] of templates) {
    const values = matchPath(template, path)
    if (values !== null) return taskOf(known, fillPath(template, values), owner, ownerSha, document)
  }
  return null
}
