import { type ErrorCode, MirrorError } from '../../core/errors.ts'
import type { Document } from '../../store/feeds/documents.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import { PATCH_FEED, SYSTEM_MATRIX, fetchFeed } from '../../upstream/feeds.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { type PreparedDocument, absent, prepareDocument, digestOfFeeds } from './documents.ts'
import { refuseRemoval } from '../removal-guard.ts'

interface Gathered {
  arrivals: PreparedDocument[]
  /** Path → why it could not be had. */
  failed: Map<string, string>
  /** The codes of the same, in the order they came. */
  codes: ErrorCode[]
  quarantined: Map<string, string>
  /** Paths whose copy held is upstream's own. */
  confirmed: string[]
  /** Whether every path was asked for; an approval is of one document alone. */
  all: boolean
  /** The earliest of upstream's dates over the documents it gave or confirmed, unix milliseconds. */
  asOf: number
}

function nothingYet(more: Pick<Gathered, 'all' | 'asOf'>): Gathered {
  return {
    arrivals: [],
    codes: [],
    failed: new Map(),
    quarantined: new Map(),
    confirmed: [],
    ...more,
  }
}

/** What an outage is called when it met several documents: that nothing answers comes before any answer. */
function codeOf(codes: readonly ErrorCode[]): ErrorCode {
  return codes.find((code) => code === 'upstream_unreachable') ?? codes[0] ?? 'upstream_status'
}

/** Every path of this source: the two that each deployment has, and the configured extra ones. */
function feedPaths(extraPaths: readonly string[]): string[] {
  return [PATCH_FEED, SYSTEM_MATRIX, ...extraPaths]
}

/**
 * One run of the other feeds: each document is fetched conditionally, checked and guarded on its own; those that
 * pass are committed together. `partial` when some could not be had; throws when upstream gave none at all.
 */
export async function syncFeeds(
  context: SyncContext,
  approved: Quarantine | null,
): Promise<SyncResult> {
  const { config, store, dryRun } = context
  const paths = feedPaths(config.feeds.extraPaths)
  const gathered = approved === null ? await gather(context, paths) : admit(approved, context)
  tell(context, gathered)
  const refusals = [...gathered.failed, ...gathered.quarantined].map(
    ([path, why]) => `${path}: ${why}`,
  )
  if (gathered.asOf === Number.POSITIVE_INFINITY)
    throw new MirrorError(codeOf(gathered.codes), refusals.join('; '))
  const held = store.listDocuments('feeds').map(({ path }) => path)
  const dropped = held.filter((path) => !paths.includes(path))
  const work = gathered.arrivals.length + dropped.length
  if (dryRun)
    return { outcome: 'complete', asOf: null, message: `dry run: ${work} documents differ` }
  const healed = refusals.length === 0 && store.readSnapshot('feeds')?.whole === false
  if (work > 0 || healed) await commit(context, gathered, dropped)
  await settleQuarantines(context, gathered.confirmed)
  const message = [work > 0 ? `${work} documents changed` : 'nothing changed', ...refusals].join(
    '; ',
  )
  if (gathered.quarantined.size > 0) return { outcome: 'quarantined', asOf: null, message }
  if (gathered.failed.size > 0) return { outcome: 'partial', asOf: null, message }
  return { outcome: 'complete', asOf: approved === null ? gathered.asOf : null, message }
}

async function gather(context: SyncContext, paths: readonly string[]): Promise<Gathered> {
  const gathered = nothingYet({ all: true, asOf: Number.POSITIVE_INFINITY })
  let done = 0
  for (const path of paths) {
    try {
      await gatherOne(context, path, gathered)
    } catch (error) {
      context.session.signal.throwIfAborted()
      if (!(error instanceof MirrorError)) throw error
      gathered.failed.set(path, error.message)
      gathered.codes.push(error.code)
    }
    context.progress({
      source: 'feeds',
      phase: 'feeds',
      unit: 'documents',
      done: ++done,
      total: paths.length,
    })
  }
  return gathered
}

async function gatherOne(context: SyncContext, path: string, gathered: Gathered): Promise<void> {
  const { session, config, full, store } = context
  const held = store.readDocument(path)
  const known = full || held === null ? null : store.readUpstreamState(path)
  try {
    const answer = await fetchFeed(session, path, known, config.upstream.maxJsonBytes)
    if (answer.status === 206) throw new MirrorError('upstream_shape', `${path}: a part of it`)
    const arrival = answer.status === 304 ? null : prepareDocument(context, path, held, answer)
    gathered.asOf = Math.min(gathered.asOf, answer.meta.date)
    if (arrival === null) gathered.confirmed.push(path)
    else await admitOrRefuse(context, held, arrival, answer.meta.date, gathered)
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'upstream_not_found') throw error
    if (!config.feeds.extraPaths.includes(path)) throw error
    if (held === null) gathered.arrivals.push(absent(context, path))
    else if (held.body !== null) {
      // One 404 does not make a feed disappear: the copy stays until the path leaves the settings.
      throw new MirrorError(
        'upstream_not_found',
        `${error.message}; the copy held stays (feeds.extraPaths)`,
      )
    }
  }
}

async function admitOrRefuse(
  context: SyncContext,
  held: Document | null,
  arrival: PreparedDocument,
  asOf: number,
  gathered: Gathered,
): Promise<void> {
  const { config, store, runId, dryRun, facts } = context
  const before = held?.entries ?? 0
  const limits = { fraction: config.feeds.guardFraction, count: config.feeds.guardEntries }
  const reason = refuseRemoval(before, before - arrival.document.entries, limits, 'entries')
  const { path, sha256, body } = arrival.document
  if (reason === null || body === null) {
    gathered.arrivals.push(arrival)
    return
  }
  const known = store.findQuarantine(path, sha256)
  const taken = known === null && store.readQuarantine(runId) !== null // a run keeps one document
  if (known === null && !taken && !dryRun) {
    const { etag, lastModified } = arrival.state
    const kept = {
      runId,
      source: 'feeds',
      path,
      reason,
      sha256,
      body,
      etag,
      lastModified,
      asOf,
    } as const
    await store.exclusive(() => store.keepQuarantine(kept))
  }
  const run = known?.runId ?? runId
  if (!taken) facts['quarantine'] = run
  const rejected = known?.decision === 'rejected'
  const standing = rejected ? `rejected before (run ${run})` : `approve or reject run ${run}`
  const later = 'the next run that meets it keeps it for approval'
  gathered.quarantined.set(path, `${reason}; ${taken ? later : standing}`)
}

/** Upstream is back at what is held: what a guard refused in between is past. */
async function settleQuarantines(
  { store, now }: SyncContext,
  confirmed: readonly string[],
): Promise<void> {
  const open = store.listOpenQuarantines().filter(({ path }) => confirmed.includes(path))
  for (const { path } of open) await store.exclusive(() => store.supersedeQuarantines(path, now()))
}

/** The refused document that someone approved, exactly as it was shown to them. */
function admit(approved: Quarantine, context: SyncContext): Gathered {
  const held = context.store.readDocument(approved.path)
  const body = contentOf(approved.body, sizeOf(approved.body))
  const arrival = prepareDocument(context, approved.path, held, {
    body,
    gzip: approved.body,
    meta: approved,
  })
  const gathered = nothingYet({ all: false, asOf: approved.asOf })
  if (arrival !== null) gathered.arrivals.push(arrival)
  return gathered
}

async function commit(
  { store, runId, now }: SyncContext,
  { arrivals, failed, quarantined, all, asOf }: Gathered,
  dropped: readonly string[],
): Promise<void> {
  await store.transaction(() => {
    for (const { document, state } of arrivals) {
      store.replaceDocument(document)
      store.replaceUpstreamState(document.path, state)
      store.supersedeQuarantines(document.path, now())
    }
    for (const path of dropped) store.removeDocument(path)
    const documents = store.listDocuments('feeds')
    const previous = store.readSnapshot('feeds')
    const sound = failed.size + quarantined.size === 0
    const whole = all ? sound : previous?.whole === true
    store.replaceSnapshot({
      source: 'feeds',
      id: digestOfFeeds(documents),
      runId,
      publishedAt: now(),
      // A document that was not confirmed keeps the age of the whole.
      asOf: all && sound ? asOf : Math.min(asOf, previous?.asOf ?? asOf),
      records: documents.reduce((sum, { entries }) => sum + entries, 0),
      whole,
    })
    return Promise.resolve({ commit: true })
  })
}

function tell({ facts }: SyncContext, gathered: Gathered): void {
  facts['documents'] = gathered.arrivals.map(({ document }) => document.path)
  if (gathered.failed.size > 0)
    facts['failed'] = [...gathered.failed].map(([path, why]) => `${path}: ${why}`)
}
