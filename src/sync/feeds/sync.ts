import { sha256Of } from '../../base/digest.ts'
import { type ErrorCode, MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import type { Document } from '../../store/feeds/documents.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import { FILTERED_FEEDS, PUBLIC_FEEDS } from '../../base/domain/feed-paths.ts'
import { fetchFeed } from '../../upstream/feeds.ts'
import { refusePaged } from '../../upstream/whole-document.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import {
  type PreparedDocument,
  type StoredDocument,
  absent,
  digestOfFeeds,
  emptiedPart,
  prepareDocument,
  readStored,
} from './documents.ts'
import { accountDoubts, createStandard, noteDoubts, publishedDoubts, recordDoubts } from '../doubts.ts'
import { olderThanLast, refuseOlder } from '../older-mirror.ts'
import { isGone, isNewest, keepRefused, refuseRemoval, removalLimits } from '../refusals.ts'

interface FetchedFeeds {
  prepared: PreparedDocument[]
  /** What the guard says of the prepared documents. */
  judged: FeedVerdict[]
  /** Path → reason why it could not be fetched. */
  failed: Map<string, string>
  /** Error codes of these failures, in order. */
  codes: ErrorCode[]
  quarantined: Map<string, string>
  /** Paths whose stored copy equals upstream's. */
  confirmed: string[]
  /** Whether every path was requested; an approval covers one document. */
  all: boolean
  /** The earliest upstream date of the fetched or confirmed documents, unix milliseconds. */
  asOf: number
}

function createFetched(more: Pick<FetchedFeeds, 'all' | 'asOf'>): FetchedFeeds {
  return {
    prepared: [],
    judged: [],
    codes: [],
    failed: new Map(),
    quarantined: new Map(),
    confirmed: [],
    ...more,
  }
}

/** Returns the error code of a run in which several documents failed: `upstream_unreachable` takes precedence. */
function codeOf(codes: readonly ErrorCode[]): ErrorCode {
  return codes.find((code) => code === 'upstream_unreachable') ?? codes[0] ?? 'upstream_status'
}

/** Returns every path of this source: the feeds that are always mirrored and the configured extra ones. */
function feedPaths(extraPaths: readonly string[]): string[] {
  return [...PUBLIC_FEEDS.map(({ path }) => path), ...extraPaths]
}

/**
 * Executes one run of the feeds: each document is fetched conditionally, checked and guarded on its own; accepted
 * documents are committed together. `partial` when some could not be fetched; throws when all failed.
 */
export async function syncFeeds(context: SyncContext, approved: Quarantine | null): Promise<SyncResult> {
  const { config, store, dryRun } = context
  const paths = feedPaths(config.feeds.extraPaths)
  const fetched = approved === null ? await fetchAll(context, paths) : await admitApproved(approved, context)
  recordFacts(context, fetched)
  const refusals = [...fetched.failed, ...fetched.quarantined].map(([path, why]) =>
    why.includes(path) ? why : `${path}: ${why}`,
  )
  if (fetched.asOf === Number.POSITIVE_INFINITY) throw new MirrorError(codeOf(fetched.codes), refusals.join('; '))
  const stored = store.feeds.listDocuments('feeds').map(({ path }) => path)
  const dropped = stored.filter((path) => !paths.includes(path))
  const work = fetched.prepared.length + dropped.length
  if (dryRun)
    return {
      outcome: 'complete',
      asOf: null,
      message: `dry run: ${counted(work, 'document differs', 'documents differ')}`,
    }
  const isRepaired = refusals.length === 0 && store.snapshots.readSnapshot('feeds')?.whole === false
  if (work > 0 || isRepaired) await commit(context, fetched, dropped, approved)
  await settleQuarantines(context, fetched.confirmed)
  const doubts = fetched.judged.flatMap(({ verdict }) => publishedDoubts(verdict, !fetched.all) ?? [])
  const message = [work > 0 ? `${counted(work, 'document')} changed` : 'nothing changed', ...doubts, ...refusals].join(
    '; ',
  )
  if (fetched.quarantined.size > 0) return { outcome: 'quarantined', asOf: null, message }
  if (fetched.failed.size > 0) return { outcome: 'partial', asOf: null, message }
  return { outcome: 'complete', asOf: approved === null ? fetched.asOf : null, message }
}

async function fetchAll(context: SyncContext, paths: readonly string[]): Promise<FetchedFeeds> {
  const fetched = createFetched({ all: true, asOf: Number.POSITIVE_INFINITY })
  let done = 0
  for (const path of paths) {
    try {
      await fetchOne(context, path, fetched)
      done += 1
    } catch (error) {
      context.session.signal.throwIfAborted()
      if (!(error instanceof MirrorError)) throw error
      fetched.failed.set(path, error.message)
      fetched.codes.push(error.code)
    }
    context.progress({
      source: 'feeds',
      phase: 'feeds',
      unit: 'documents',
      done,
      total: paths.length,
    })
  }
  return fetched
}

async function fetchOne(context: SyncContext, path: string, fetched: FetchedFeeds): Promise<void> {
  const { session, config, full, kind, store } = context
  const stored = readStored(context, path)
  // What is damaged is fetched again: upstream would confirm bytes that are not there. A reconcile takes no ETag's word for the content.
  const isKnown = !full && kind !== 'reconcile' && stored !== null && stored.content !== null
  const known = isKnown ? store.feeds.readUpstreamState(path) : null
  try {
    const answer = await fetchFeed(session, path, known, config.upstream.maxJsonBytes)
    if (answer.status === 206)
      throw new MirrorError('upstream_shape', `${path}: upstream sent a partial response (206)`)
    if (answer.status !== 304) refuseOlder(context, path, answer.meta)
    const document = answer.status === 304 ? null : prepareDocument(context, path, stored, answer)
    if (document !== null) refusePaged(path, answer.meta, document.document.entries)
    fetched.asOf = Math.min(fetched.asOf, answer.meta.date)
    if (document === null) fetched.confirmed.push(path)
    else await admitOrRefuse(context, stored, document, answer.meta.date, fetched)
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'upstream_not_found') throw error
    if (!config.feeds.extraPaths.includes(path)) throw error
    if (stored === null) fetched.prepared.push(absent(context, path))
    else if (stored.row.body !== null) {
      // A 404 does not remove a feed: the stored copy stays until the path is removed from the setting.
      throw new MirrorError(
        'upstream_not_found',
        `${error.message}; the stored copy stays until its path is removed from feeds.extraPaths`,
      )
    }
  }
}

async function admitOrRefuse(
  context: SyncContext,
  stored: StoredDocument | null,
  document: PreparedDocument,
  asOf: number,
  fetched: FetchedFeeds,
): Promise<void> {
  const { config, store, runId } = context
  const before = stored?.row.entries ?? 0
  const limits = removalLimits(config)
  const older = olderThanLast(context, document.state, store.feeds.readUpstreamState(document.document.path))
  const fewer = refuseRemoval(before, before - document.document.entries, limits, 'entries')
  const removal = older === null ? (fewer ?? emptied(stored, document.document)) : `upstream's document ${older}`
  const { path, sha256, body } = document.document
  const judged = removal === null ? await judgeFeed(context, stored, document.document) : null
  if (judged !== null) recordDoubts(context, judged.verdict)
  const reason = removal ?? judged?.verdict.refusal ?? null
  if (reason === null || body === null) {
    fetched.prepared.push(document)
    if (judged !== null) fetched.judged.push(judged)
    return
  }
  const { quarantine } = store
  const { etag, lastModified } = document.state
  // A run stores one quarantined document.
  const isLater = quarantine.findQuarantine(path, sha256) === null && quarantine.readQuarantine(runId) !== null
  const decision = isLater
    ? 'another document of this run waits for approval; a later run stores this one for approval'
    : await keepRefused(context, { source: 'feeds', path, reason, sha256, body, etag, lastModified, asOf })
  fetched.quarantined.set(path, `${reason}; ${decision ?? `approve or reject run ${runId}`}`)
}

/** Returns why a feed must not lose a part of it at once, as all patches of an ecosystem; null: it does not. */
function emptied(stored: StoredDocument | null, { path, body, sha256 }: Document): string | null {
  const isOurs = FILTERED_FEEDS.has(path) || PUBLIC_FEEDS.some((one) => one.path === path)
  if (!isOurs || stored === null || stored.content === null || body === null) return null
  if (stored.row.sha256.equals(sha256)) return null
  const part = emptiedPart(parsed(stored.content), parsed(contentOf(body, sizeOf(body))))
  return part === null ? null : `it would empty ${part}`
}

/** Closes quarantines of confirmed documents: upstream serves the stored state again. */
async function settleQuarantines({ store, now }: SyncContext, confirmed: readonly string[]): Promise<void> {
  const open = store.quarantine.listOpenQuarantines().filter(({ path }) => confirmed.includes(path))
  for (const { path } of open) await store.exclusive(() => store.quarantine.supersedeQuarantines(path, now()))
}

/** Returns the document that the operator approved: the bytes that were reviewed, while upstream may still serve them. */
async function admitApproved(approved: Quarantine, context: SyncContext): Promise<FetchedFeeds> {
  const { path } = approved
  const stored = readStored(context, path)
  const { asOf, ...answer } = isNewest(context, approved) ? keptAnswer(approved) : await askAgain(context, approved)
  const document = prepareDocument(context, path, stored, answer)
  const fetched = createFetched({ all: false, asOf })
  if (document === null) return fetched
  fetched.prepared.push(document)
  const judged = await judgeFeed(context, stored, document.document)
  if (judged !== null) fetched.judged.push(judged)
  return fetched
}

function keptAnswer(approved: Quarantine) {
  const { body, asOf } = approved
  return { body: contentOf(body, sizeOf(body)), gzip: body, meta: approved, asOf }
}

/** Fetches what was approved; throws where upstream serves something else by now. */
async function askAgain(context: SyncContext, approved: Quarantine) {
  const { session, config } = context
  const { path, sha256 } = approved
  const answer = await fetchFeed(session, path, null, config.upstream.maxJsonBytes)
  if (answer.status !== 200 || !sha256Of(answer.body).equals(sha256)) throw isGone(approved)
  refuseOlder(context, path, answer.meta)
  return { ...answer, asOf: answer.meta.date }
}

async function commit(
  context: SyncContext,
  { prepared, judged, failed, quarantined, all, asOf }: FetchedFeeds,
  dropped: readonly string[],
  approved: Quarantine | null,
): Promise<void> {
  const { store, runId, now } = context
  await store.transaction(() => {
    if (approved !== null) store.quarantine.decideQuarantine(approved.runId, 'approved', now())
    const last = store.changes.lastLogged()
    for (const { document, state } of prepared) {
      store.feeds.replaceDocument(document)
      store.feeds.replaceUpstreamState(document.path, state)
      store.quarantine.supersedeQuarantines(document.path, now())
    }
    for (const path of dropped) store.feeds.removeDocument(path)
    const documents = store.feeds.listDocuments('feeds')
    const previous = store.snapshots.readSnapshot('feeds')
    const isComplete = failed.size + quarantined.size === 0
    const whole = all ? isComplete : previous?.whole === true
    store.snapshots.replaceSnapshot({
      source: 'feeds',
      id: digestOfFeeds(documents),
      runId,
      publishedAt: now(),
      // An unconfirmed document keeps the age of the whole snapshot.
      asOf: all && isComplete ? asOf : Math.min(asOf, previous?.asOf ?? asOf),
      records: documents.reduce((sum, { entries }) => sum + entries, 0),
      whole,
    })
    for (const one of judged) one.account()
    const verdicts = judged.map(({ verdict }) => verdict)
    noteDoubts(context, last, verdicts, { isApproved: !all })
    return Promise.resolve({ commit: true })
  })
}

function recordFacts({ facts }: SyncContext, fetched: FetchedFeeds): void {
  facts['documents'] = fetched.prepared.map(({ document }) => document.path)
  if (fetched.failed.size > 0) facts['failed'] = [...fetched.failed].map(([path, why]) => `${path}: ${why}`)
}

/** What a feed of patches would hide, and how it is accounted for. */
interface FeedVerdict {
  readonly verdict: GuardVerdict
  /** Accounts for it, in the transaction that publishes. */
  readonly account: () => void
}

/** Judges a feed of patches that replaces the stored one; null: it has the same bytes, is another document, or the guard is off. */
async function judgeFeed(
  context: SyncContext,
  stored: StoredDocument | null,
  { path, body, sha256 }: Document,
): Promise<FeedVerdict | null> {
  const { config } = context
  if (config.guard.mode === 'off' || !FILTERED_FEEDS.has(path)) return null
  if (stored === null || stored.row.body === null || body === null) return null
  if (stored.row.sha256.equals(sha256)) return null
  const { lostEntries } = await import('../../guard/feed-entries.ts')
  const { createDoubtCount } = await import('../../guard/verdict.ts')
  const after = contentOf(body, sizeOf(body))
  const compared = stored.content === null ? null : lostEntries(parsed(stored.content), parsed(after))
  const standard = createStandard(context, () => compared?.total ?? 0)
  const count = createDoubtCount(standard)
  // The entries of a few forms are read.
  const isUnread = compared?.total === 0 && stored.row.entries > 0
  if (compared === null || isUnread) {
    const because = isUnread ? UNREAD : DAMAGED
    count.note({ kind: 'notCompared', name: path, content: '', because, packages: [] })
  }
  for (const { name, because, isEnded } of compared?.lost ?? []) {
    const kind = isEnded ? 'entriesEnded' : 'entriesLost'
    count.note({ kind, name: `${path} ${name}`, content: '', because, packages: [], path })
  }
  const verdict = count.verdict()
  return { verdict, account: () => accountDoubts(context, verdict, standard) }
}

const UNREAD = 'not compared: the form of its entries is not known'
const DAMAGED = 'not compared: the stored bytes that it replaces cannot be read'

function parsed(content: Buffer): unknown {
  return JSON.parse(jsonTextOf(content)) as unknown
}
