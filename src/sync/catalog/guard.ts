import { createHash } from 'node:crypto'
import { sha256Of } from '../../core/digest.ts'
import { ownsResource } from '../../domain/resources.ts'
import { type StoredAnswers, isNone } from '../../store/catalog/answers.ts'
import { packContent } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import { deflate } from '../../zip/member.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { CatalogContext } from './context.ts'
import { isNarrow } from './scope/refresh-scope.ts'
import type { Crawl } from './crawl.ts'
import type { SyncResult } from '../context.ts'
import { isDocument } from './answers/plan.ts'
import { NAMED } from './removals.ts'
import { explainRemoval, quarantineChange, refuseRemoval } from '../removal-guard.ts'

/**
 * Quarantines a run that would remove too many items of a list, or too many items with stored answers (as when the
 * scope shrinks), or to hide what should not be hidden (`verdict`). Stores the list of removals for `approve`. Returns null when the run may continue.
 */
export async function guardCatalog(
  context: CatalogContext,
  crawl: Crawl,
  stored: StoredAnswers,
  approved: Quarantine | null,
  verdict: GuardVerdict | null,
): Promise<SyncResult | null> {
  const { config, store, source } = context
  const limits = { fraction: config.catalog.guardFraction, count: config.catalog.guardItems }
  const reasons: string[] = []
  const refused: Record<string, unknown> = {}
  const names: string[] = []
  for (const { path, resource, stored: id } of crawl.walks.walked.values()) {
    const list = id === null ? null : store.catalog.readList(path)
    if (list === null) continue
    const gone = store.catalog.countGone(list.id, path)
    const reason = refuseRemoval(list.entries, gone, limits, 'items')
    if (reason === null || gone <= config.catalog.guardItems) continue
    reasons.push(`${path}: ${reason}`)
    refused[path] = { count: gone, sha256: digestOfIds(store.catalog.eachGone(list.id, path)) }
    for (const id of store.catalog.eachGone(list.id, path)) names.push(`${resource.name}/${id}`)
  }
  const check = (key: string, noun: string, total: number, gone: readonly string[]): void => {
    const why = refuseRemoval(total, gone.length, limits, noun)
    if (why === null || gone.length <= config.catalog.guardItems) return
    reasons.push(why)
    refused[key] = gone
    for (const name of gone) names.push(name)
  }
  const owners = ownersOf(context, crawl, stored)
  check('owners', 'items with their artifacts', owners.stored, owners.gone)
  const artifacts = lostArtifacts(context, crawl, stored)
  check('artifacts', 'artifacts, for which upstream answers 404 or 204', artifacts.stored, artifacts.gone)
  const hidden = hiddenAnswers(context, crawl, stored)
  check('refused', 'answers, which the service refuses now (403)', hidden.stored, hidden.gone)
  const lists = lostLists(context, crawl)
  check('lists', 'lists', lists.stored, lists.gone)
  const refusal = verdict?.refusal ?? null
  if (verdict !== null && refusal !== null) {
    reasons.push(refusal)
    refused['doubts'] = verdict.identity.toString('hex')
  }
  if (reasons.length === 0) return null
  const body = Buffer.from(JSON.stringify(refused))
  const sha256 = sha256Of(body)
  if (approved?.sha256.equals(sha256) === true) return null
  if (names.length > 0) noteRefused(context, names)
  const why = reasons.join('; ')
  // The items of a list are upstream's alone; what is mirrored of them, and which lists, the settings decide too.
  const isOfScope = 'owners' in refused || 'lists' in refused
  return refuse(context, source, isOfScope ? explainRemoval(context, why) : why, body, sha256)
}

/** Records what would be removed: how much, and the first of it. A run that is refused shows it as planned. */
function noteRefused({ facts }: CatalogContext, names: readonly string[]): void {
  const all = [...new Set(names)]
  facts['removed'] = all.length
  facts['removedIds'] = all.slice(0, NAMED)
}

/** Returns the number of stored artifacts and the paths of those for which the fetched answer is 404 or 204. */
function lostArtifacts(
  { store }: CatalogContext,
  { wanted, settled }: Crawl,
  stored: StoredAnswers,
): { stored: number; gone: string[] } {
  const isArtifact = (path: string): boolean => (wanted.get(path)?.document ?? null) !== null
  const isLost = (path: string): boolean =>
    isArtifact(path) && stored.get(path)?.status === 200 && isNone(store.catalog.readFetched(path))
  const gone = [...store.catalog.eachFetchedPath()].filter(isLost)
  let count = 0
  // Where nothing is lost, the number of artifacts decides nothing.
  if (gone.length > 0)
    for (const { path, owner, status } of stored.ofOwners(() => true))
      if (status === 200 && (settled.owner(owner) ? isDocument(path) : isArtifact(path))) count++
  return { stored: count, gone: gone.sort() }
}

/** Returns the number of stored answers that are served, and the paths of those that the service refuses now. */
function hiddenAnswers(
  { store, source }: CatalogContext,
  { forbidden }: Crawl,
  stored: StoredAnswers,
): { stored: number; gone: string[] } {
  if (forbidden.size === 0) return { stored: 0, gone: [] }
  const before = new Set(store.catalog.listForbiddenPaths().map(({ path }) => path))
  const isOwn = (owner: string): boolean => ownsResource(source, owner.split('/', 1)[0] ?? '')
  const served = [...stored.ofOwners(isOwn)].filter(({ path, status }) => status === 200 && !before.has(path))
  const gone = served.map(({ path }) => path).filter((path) => forbidden.has(path))
  return { stored: served.length, gone: gone.sort() }
}

/** Returns the number of stored lists and the paths of those that are no longer in scope. */
function lostLists({ store, source }: CatalogContext, { wantedLists }: Crawl): { stored: number; gone: string[] } {
  const own = store.catalog.listLists().filter(({ resource }) => ownsResource(source, resource))
  const gone = own.map(({ path }) => path).filter((path) => !wantedLists.has(path))
  return { stored: own.length, gone }
}

/** Returns the path under which a source's quarantined runs are stored. */
export function quarantinePath(source: CatalogContext['source']): string {
  return `/${source}`
}

/** Returns the digest that identifies a set of removals, so that an approval is valid for exactly that set. */
function digestOfIds(ids: Iterable<string>): string {
  const hash = createHash('sha256')
  for (const id of ids) hash.update(id).update('\0')
  return hash.digest('hex')
}

/** Returns the number of items with stored answers, and those of them that are no longer in scope. */
function ownersOf(
  { source }: CatalogContext,
  { wanted, settled }: Crawl,
  stored: StoredAnswers,
): { stored: number; gone: string[] } {
  const kept = new Set([...wanted.values()].map(({ owner }) => owner))
  const all = [...stored.owners()].filter((owner) => ownsResource(source, owner.split('/', 1)[0] ?? ''))
  const gone = all.filter((owner) => !kept.has(owner) && !settled.owner(owner))
  return { stored: all.length, gone: gone.sort() }
}

/** Returns the result of a run that must wait for the decision on an earlier quarantined run. */
function awaitDecision({ facts }: CatalogContext, run: number, reason: string): SyncResult {
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
  const { store, dryRun, now } = context
  const path = quarantinePath(source)
  const known = store.quarantine.findQuarantine(path, sha256)
  // A refresh compares only a part; it must not replace what a sync, comparing everything, has quarantined.
  const open = store.quarantine.listOpenQuarantines().find((one) => one.path === path)
  if (known === null && open !== undefined && isNarrow(context)) return awaitDecision(context, open.runId, reason)
  const packed = packContent(body, deflate)
  const change = { source, path, reason, sha256, body: packed, asOf: now() }
  const result = await quarantineChange(context, { ...change, etag: null, lastModified: null })
  return dryRun ? { ...result, message: `dry run: ${reason}` } : result
}
