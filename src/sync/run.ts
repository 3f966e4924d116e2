import { MirrorError, messageOf } from '../core/errors.ts'
import { plainText } from '../core/text.ts'
import type { SourceName } from '../domain/sources.ts'
import { contentOf, sizeOf } from '../store/database/gzip.ts'
import { nameStorageError } from '../store/database/open.ts'
import type { Run, RunFacts } from '../store/runs/runs.ts'
import type { Cost } from '../upstream/http/session.ts'
import type { UpstreamSurface } from '../upstream/surfaces.ts'
import { reconcileCatalog } from './catalog/answers/reconcile.ts'
import { createCatalogContext } from './catalog/context.ts'
import { syncCatalog } from './catalog/sync.ts'
import type { RunRequest, RunnerDeps, SyncContext, SyncResult } from './context.ts'
import { syncFeeds } from './feeds/sync.ts'
import { parseIndex } from './osv/index-parser.ts'
import { syncOsv } from './osv/sync.ts'
import { type Sessions, openSessions } from './sessions.ts'

/** How a run ended, as its row tells it. */
type Ended = Pick<Run, 'asOf' | 'code' | 'message' | 'facts'> & {
  state: SyncResult['outcome']
}

/** Does what a run is for. Never throws: a failure is a way to end. */
export async function perform(
  deps: RunnerDeps,
  request: RunRequest,
  runId: number,
): Promise<Ended> {
  const facts: RunFacts = {}
  const sessions = openSessions(deps.upstream, deps.signal)
  try {
    const result = await sync(contextOf(deps, request, runId, sessions, facts), request, sessions)
    return {
      ...end(hasCommitted(request, result.outcome) ? facts : asPlan(facts), sessions.cost()),
      state: result.outcome,
      asOf: result.asOf,
      code: null,
      message: plainText(result.message, 2000),
    }
  } catch (error) {
    const named = nameFailure(error, deps)
    return {
      ...end(asPlan(facts), sessions.cost()),
      state: 'failed',
      asOf: null,
      code: named.code,
      message: plainText(named.message, 2000),
    }
  }
}

function contextOf(
  { config, store, now, onProgress }: RunnerDeps,
  { source, kind, full = false, dryRun = false, distrust = [], targets = [] }: RunRequest,
  runId: number,
  sessions: Sessions,
  facts: RunFacts,
): SyncContext {
  const progress = onProgress ?? (() => undefined)
  const doubted = new Set(distrust)
  const session = sessions.of(MAIN[source])
  return {
    source,
    config,
    store,
    session,
    runId,
    kind,
    full,
    dryRun,
    doubted,
    targets,
    now,
    progress,
    facts,
  }
}

/** The surface that a source's run speaks to first. */
const MAIN: Record<SourceName, UpstreamSurface> = {
  osv: 'public',
  feeds: 'public',
  catalog: 'remediation',
  identity: 'identity',
}

function sync(
  context: SyncContext,
  { source, approved }: RunRequest,
  sessions: Sessions,
): Promise<SyncResult> {
  if (source === 'feeds') return syncFeeds(context, approved ?? null)
  if (source !== 'osv') {
    const catalog = createCatalogContext(context, sessions)
    if (context.kind === 'reconcile') return reconcileCatalog(catalog)
    return syncCatalog(catalog, approved ?? null)
  }
  if (approved === undefined) return syncOsv(context, null)
  const { body, etag, lastModified, asOf } = approved
  const bytes = contentOf(body, sizeOf(body))
  return syncOsv(context, {
    index: parseIndex(bytes),
    held: false,
    gzip: body,
    etag,
    lastModified,
    asOf,
  })
}

/** Facts that say what a run changed in the mirror. */
const CHANGES: ReadonlySet<string> = new Set([
  ...['added', 'changed', 'removed', 'removedIds', 'lists', 'arrived', 'documents'],
  'documentsDropped',
])

/** Whether what the facts count is stored: a quarantine publishes nothing, but that each feed is judged on its own. */
function hasCommitted({ source, dryRun }: RunRequest, outcome: SyncResult['outcome']): boolean {
  return dryRun !== true && (outcome !== 'quarantined' || source === 'feeds')
}

/** The facts of a run that committed nothing: what it would have changed is told as planned (`plannedAdded`). */
function asPlan(facts: RunFacts): RunFacts {
  const planned = (key: string): string => `planned${key.charAt(0).toUpperCase()}${key.slice(1)}`
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [CHANGES.has(key) ? planned(key) : key, value]),
  )
}

function end(facts: RunFacts, cost: Cost): { facts: RunFacts } {
  const { asOf: _confirmed, ...found } = facts
  const told = Object.fromEntries(
    Object.entries(found).map(([key, value]) => [key, plainFact(value)]),
  )
  return { facts: { ...told, requests: cost.requests, bytes: cost.bytes, retries: cost.retries } }
}

function plainFact(value: RunFacts[string]): RunFacts[string] {
  if (typeof value === 'string') return plainText(value)
  return typeof value === 'object' && value !== null ? value.map((text) => plainText(text)) : value
}

/** A run's failure in the program's own terms; what has no name is a defect of ours and keeps its stack in `cause`. */
function nameFailure(error: unknown, { config, signal }: RunnerDeps): MirrorError {
  if (signal.aborted) {
    return new MirrorError('aborted', 'stopped on request; nothing was committed', { cause: error })
  }
  const named = nameStorageError(error, config.data.dir)
  return named instanceof MirrorError
    ? named
    : new MirrorError('internal', messageOf(error), { cause: error })
}
