import { createHash } from 'node:crypto'
import { ownsResource } from '../../domain/resources.ts'
import { type StoredAnswer, isNone } from '../../store/catalog/answers.ts'
import { packContent } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import { deflate } from '../../zip/member.ts'
import type { CatalogContext } from './context.ts'
import { isNarrow } from './scope/refresh-scope.ts'
import type { Crawl } from './crawl.ts'
import type { SyncResult } from '../context.ts'
import { refuseRemoval } from '../removal-guard.ts'

/**
 * Refuses a run that would remove too much: of a list's items, or of the items whose answers are held (as when the
 * scope shrinks). What it would remove is kept for `approve`. Null when it may go on.
 */
export async function guardCatalog(
  context: CatalogContext,
  crawl: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
  approved: Quarantine | null,
): Promise<SyncResult | null> {
  const { config, store, source } = context
  const limits = { fraction: config.catalog.guardFraction, count: config.catalog.guardItems }
  const reasons: string[] = []
  const refused: Record<string, unknown> = {}
  for (const { path, held: id } of crawl.walks.walked.values()) {
    const list = id === null ? null : store.readCatalogList(path)
    if (list === null) continue
    const gone = store.countGone(list.id, path)
    const reason = refuseRemoval(list.entries, gone, limits, 'items')
    if (reason === null || gone <= config.catalog.guardItems) continue
    reasons.push(`${path}: ${reason}`)
    refused[path] = { count: gone, sha256: digestOfIds(store.eachGone(list.id, path)) }
  }
  const owners = ownersOf(context, crawl, held)
  const reason = refuseRemoval(
    owners.held.size,
    owners.gone.length,
    limits,
    'items with their artifacts',
  )
  if (reason !== null && owners.gone.length > config.catalog.guardItems) {
    reasons.push(reason)
    refused['owners'] = owners.gone
  }
  const judge = (key: string, noun: string, total: number, gone: readonly string[]): void => {
    const why = refuseRemoval(total, gone.length, limits, noun)
    if (why === null || gone.length <= config.catalog.guardItems) return
    reasons.push(why)
    refused[key] = gone
  }
  const artifacts = lostArtifacts(context, crawl, held)
  judge(
    'artifacts',
    'artifacts, which upstream answers 404 or 204 for',
    artifacts.held,
    artifacts.gone,
  )
  const lists = lostLists(context, crawl)
  judge('lists', 'lists', lists.held, lists.gone)
  if (reasons.length === 0) return null
  const body = Buffer.from(JSON.stringify(refused))
  const sha256 = createHash('sha256').update(body).digest()
  if (approved?.sha256.equals(sha256) === true) return null
  return refuse(context, source, reasons.join('; '), body, sha256)
}

/** Artifacts that are held and that upstream has none of any more, by what is in hand. */
function lostArtifacts(
  { store }: CatalogContext,
  { wanted }: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
): { held: number; gone: string[] } {
  const gone: string[] = []
  let count = 0
  for (const { path, status } of held.values()) {
    const document = wanted.get(path)?.document ?? null
    if (status !== 200 || document === null) continue
    count++
    if (isNone(store.readFetched(path))) gone.push(path)
  }
  return { held: count, gone: gone.sort() }
}

/** Lists that are held and that nothing wants any more. */
function lostLists(
  { store, source }: CatalogContext,
  { wantedLists }: Crawl,
): { held: number; gone: string[] } {
  const own = store.listCatalogLists().filter(({ resource }) => ownsResource(source, resource))
  const gone = own.map(({ path }) => path).filter((path) => !wantedLists.has(path))
  return { held: own.length, gone }
}

/** Where a source's refused runs are kept. */
export function quarantinePath(source: CatalogContext['source']): string {
  return `/${source}`
}

/** What makes one removal the same as another: approving it lets in no other. */
function digestOfIds(ids: Iterable<string>): string {
  const hash = createHash('sha256')
  for (const id of ids) hash.update(id).update('\0')
  return hash.digest('hex')
}

/** Items whose answers are held, and those of them that nothing wants any more. */
function ownersOf(
  { source }: CatalogContext,
  { wanted }: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
): { held: Set<string>; gone: string[] } {
  const kept = new Set([...wanted.values()].map(({ owner }) => owner))
  const all = new Set<string>()
  for (const { owner } of held.values())
    if (ownsResource(source, owner.split('/', 1)[0] ?? '')) all.add(owner)
  return { held: all, gone: [...all].filter((owner) => !kept.has(owner)).sort() }
}

/** A refusal that waits for the decision about another run. */
function waitFor({ facts }: CatalogContext, run: number, reason: string): SyncResult {
  facts['quarantine'] = run
  return {
    outcome: 'quarantined',
    asOf: null,
    message: `${reason}; approve or reject run ${run} first`,
  }
}

async function refuse(
  context: CatalogContext,
  source: CatalogContext['source'],
  reason: string,
  body: Buffer,
  sha256: Buffer,
): Promise<SyncResult> {
  const { store, runId, dryRun, now, facts } = context
  const path = quarantinePath(source)
  const known = store.findQuarantine(path, sha256)
  // A refresh sees a part: what a sync refused, seeing all, is not to be replaced by it.
  const open = store.listOpenQuarantines().find((one) => one.path === path)
  if (known === null && open !== undefined && isNarrow(context))
    return waitFor(context, open.runId, reason)
  if (known === null && !dryRun) {
    const packed = packContent(body, deflate)
    const kept = { runId, source, path, reason, sha256, body: packed }
    await store.exclusive(() =>
      store.keepQuarantine({ ...kept, etag: null, lastModified: null, asOf: now() }),
    )
  }
  const run = known?.runId ?? runId
  facts['quarantine'] = run
  if (dryRun) return { outcome: 'quarantined', asOf: null, message: `dry run: ${reason}` }
  const standing =
    known?.decision === 'rejected' ? `rejected before (run ${run})` : `approve or reject run ${run}`
  return { outcome: 'quarantined', asOf: null, message: `${reason}; ${standing}` }
}
