import { MirrorError, messageOf } from '../../../base/errors.ts'
import { counted } from '../../../base/text.ts'
import { fillPath, matchPath } from '../../../base/domain/path-templates.ts'
import { RELEASES, RESOURCES, ownsResource } from '../../../base/domain/resources.ts'
import type { FetchedAnswer } from '../../../store/catalog/answer-writes.ts'
import { type StoredAnswer, answerState, isNone } from '../../../store/catalog/answers.ts'
import { isForbidden, statusOf } from '../../../upstream/http/errors.ts'
import { noteDoubts, publishedDoubts, recordDoubts } from '../../doubts.ts'
import { type ArtifactVerdict, judgeArtifacts } from '../artifacts-guard.ts'
import type { CatalogContext } from '../context.ts'
import { losesSets } from '../poorer-items.ts'
import { fetchAnswer } from './fetch.ts'
import { digestOfCatalog } from '../digest.ts'
import { isConfirmationDue } from './due.ts'
import { type HostFailures, createHostFailures } from './host-failures.ts'
import { type Task, taskOf } from './plan.ts'
import { contradictedLoss, isEmptied } from './releases.ts'
import { isFatal, resourcesOf } from '../lists/walk.ts'
import type { SyncResult } from '../../context.ts'
import { runPool } from '../../../base/pacing.ts'

/** Number of confirmed answers stored in one write; a killed run loses at most this many. */
const BATCH = 50

/**
 * Executes a run of kind `reconcile`: requests again the answers that may change while their list entries do not
 * (details, the package catalog's answers, VEX) when each is due. It confirms only what it requests; lists, scope and
 * removals are left to the syncs.
 */
export async function reconcileCatalog(context: CatalogContext): Promise<SyncResult> {
  const { store, config, facts, dryRun } = context
  const tasks = dueTasks(context)
  facts['due'] = tasks.length
  if (dryRun) return { outcome: 'complete', asOf: null, message: `dry run: ${tasks.length} due` }
  const found: Found = {
    confirmed: new Map(),
    changed: [],
    contradicted: [],
    failed: [],
    doubts: null,
  }
  let confirmed = 0
  const flush = async (): Promise<void> => {
    const batch = [...found.confirmed]
    found.confirmed.clear()
    confirmed += batch.length
    if (batch.length > 0) await store.exclusive(() => store.catalog.confirmAnswers(batch))
  }
  const failures = createHostFailures()
  try {
    await runPool(tasks, config.catalog.concurrency, async ([task, stored]) => {
      const reason = failures.skipReason(task)
      if (reason !== null) found.failed.push(`${task.canonical}: ${reason}`)
      else await askAgain(context, task, stored, { found, failures })
      if (found.confirmed.size >= BATCH) await flush()
    })
  } finally {
    await flush()
    await publish(context, found)
  }
  const { doubts } = found
  facts['confirmed'] = confirmed
  facts['changed'] = found.changed.length
  if (found.contradicted.length > 0) facts['contradicted'] = found.contradicted.length
  const changes =
    tasks.length === 0
      ? 'nothing was due: each answer that is asked for again was confirmed within catalog.reconcileHours'
      : `${counted(confirmed, 'answer')} confirmed, ${found.changed.length} changed`
  const summary = doubts === null ? changes : `${changes}; ${doubts}`
  if (found.failed.length === 0) return { outcome: 'complete', asOf: null, message: summary }
  facts['lacking'] = found.failed.length
  facts['lackingIds'] = found.failed.slice(0, 20)
  const message = `${summary}; ${found.failed.length} could not be fetched and keep their confirmation date`
  return { outcome: 'partial', asOf: null, message }
}

interface Found {
  /** Path → upstream's date (unix milliseconds) of answers that equal the stored ones. */
  confirmed: Map<string, number>
  changed: string[]
  /** Paths that upstream answers with 403, or that something is gone: the next sync requests them again, and its guard decides. */
  contradicted: string[]
  /** `path: reason`. */
  failed: string[]
  /** What is doubtful of what was published, in words; null: nothing. */
  doubts: string | null
}

async function askAgain(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer,
  { found, failures }: { found: Found; failures: HostFailures },
): Promise<void> {
  const { store, session } = context
  try {
    const { answer, at } = await fetchAnswer(context, task, stored)
    failures.recordSuccess(task)
    const same = answer === null || answerState(answer) === store.catalog.readAnswerState(task.canonical)
    if (same) found.confirmed.set(task.canonical, at)
    else if (takesAway(context, task, answer)) found.contradicted.push(task.canonical)
    else {
      await store.exclusive(() => store.catalog.keepFetched(answer))
      found.changed.push(task.canonical)
    }
  } catch (error) {
    session.signal.throwIfAborted()
    if (!(error instanceof MirrorError) || isFatal(error)) throw error
    if (statusOf(error) !== 202) failures.recordFailure(task, error) // 202: the service is still building it, so the host responds
    if (isForbidden(error)) found.contradicted.push(task.canonical)
    found.failed.push(`${task.canonical}: ${messageOf(error)}`)
  }
}

/** Returns whether an answer says that something is gone, on which a sync decides. */
function takesAway(context: CatalogContext, task: Task, answer: FetchedAnswer): boolean {
  if (isNone(answer) || isEmptied(context, task, answer) || losesSets(context, answer)) return true
  return contradictedLoss(context, task, answer) !== null
}

async function publish(context: CatalogContext, found: Found): Promise<void> {
  const { store, source, runId, now } = context
  const before = store.snapshots.readSnapshot(source)
  if (before === null) return
  const artifacts = await judgeChanged(context, found)
  if (found.contradicted.length > 0) await store.exclusive(() => store.catalog.askAgain(found.contradicted))
  found.doubts = publishedDoubts(artifacts?.verdict ?? null, false)
  if (found.changed.length === 0) return
  await store.transaction(() => {
    const last = store.changes.lastLogged()
    store.catalog.publishPaths(found.changed, now())
    store.catalog.sweepDocuments()
    const id = digestOfCatalog(store, source)
    store.snapshots.replaceSnapshot({ ...before, id, runId, publishedAt: now() })
    artifacts?.account()
    if (artifacts !== null) noteDoubts(context, last, [artifacts.verdict], { isApproved: false })
    return Promise.resolve({ commit: true })
  })
}

/**
 * Judges the changed artifacts. Those that must not be published are left to the next sync, which requests them again and
 * asks a person; null is returned for them, since nothing of them is published.
 */
async function judgeChanged(context: CatalogContext, found: Found): Promise<ArtifactVerdict | null> {
  const { store } = context
  const changed = new Set(found.changed)
  const artifacts = await judgeArtifacts(context, (path) => changed.has(path))
  if (artifacts === null) return null
  recordDoubts(context, artifacts.verdict)
  const { refusal } = artifacts.verdict
  if (refusal === null) return artifacts
  const refused = found.changed.filter((path) => /\/(vex|sbom)$/.test(path))
  await store.exclusive(() => store.catalog.dropFetched(refused))
  found.changed = found.changed.filter((path) => !refused.includes(path))
  found.contradicted.push(...refused)
  found.failed.push(`not published, the next sync asks for a decision: ${refusal}`)
  return null
}

/** Returns the due answers, the longest unconfirmed first. */
function dueTasks(context: CatalogContext): [Task, StoredAnswer][] {
  const { store, source, full } = context
  const due: [Task, StoredAnswer][] = []
  for (const stored of store.catalog.eachStoredAnswer()) {
    if (stored.status !== 200 || stored.ownerSha.length === 0 || !ownsResource(source, stored.resource)) continue
    if (!full && !isConfirmationDue(context, stored)) continue
    const task = taskFor(context, stored)
    if (task !== null) due.push([task, stored])
  }
  const fetched = new Set(store.catalog.eachFetchedPath()) // fetched by a killed run: the next sync publishes them
  return due
    .filter(([{ canonical }]) => !fetched.has(canonical))
    .sort(([, one], [, other]) => (one.confirmedAt ?? 0) - (other.confirmedAt ?? 0))
}

/** Returns the task of a stored answer; null for one that cannot change, and for one outside the settings. */
function taskFor(context: CatalogContext, { path, owner, ownerSha, resource }: StoredAnswer): Task | null {
  if (resource === 'releases') {
    if (!context.has('catalog')) return null
    const plain = [RELEASES.versions, RELEASES.cves, RELEASES.details]
    if (!plain.some((template) => matchPath(template, path) !== null)) return null
    return taskOf({ name: resource, surface: 'catalog', secrets: false }, path, owner, ownerSha, null)
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
