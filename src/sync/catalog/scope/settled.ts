import { resourceNamed, listPathOf, resourceOf } from '../../../base/domain/resources.ts'
import type { Config } from '../../../config/schema.ts'
import { REFRESHED_LISTS } from '../../../base/domain/event-types.ts'
import { matchPath } from '../../../base/domain/path-templates.ts'
import type { StoredAnswers } from '../../../store/catalog/answers.ts'
import { NO_OWNER_DIGEST, digestOf } from '../answers/plan.ts'
import type { CatalogContext } from '../context.ts'
import type { Crawl, PackageScope, RefreshScope, Settled } from '../crawl.ts'
import type { ListedItem, Scope } from './scope.ts'
import { isNarrow } from './refresh-scope.ts'

/** Settled where every request is planned. */
export const NONE_SETTLED: Settled = { owner: () => false, missing: () => false }

/** Artifact sets: which of them are wanted depends on what other answers name. */
const NAMED_BY_OTHERS = 'avrs'

/** What a run left: by it a refresh knows whether it may rely on that run. */
interface SettledRun {
  readonly runId: number
  readonly snapshot: string
  readonly packages: PackageScope
}

/**
 * The last run of the catalog by this process that left nothing unrequested, by its settings: the scope follows from them. Other
 * settings, another run in between however it ended, another process, or an import may have left another state.
 */
const settledRuns = new WeakMap<Config, SettledRun>()

function snapshotOf({ store, source }: Pick<CatalogContext, 'store' | 'source'>): string {
  const snapshot = store.snapshots.readSnapshot(source)
  return snapshot === null ? '' : `${snapshot.id} ${snapshot.runId}`
}

/** Records that a run has published or confirmed its result, so that the next refresh can rely on it. */
export function recordSettled(context: CatalogContext, { carriedOver, packages }: Crawl): void {
  const { source, config, dryRun, runId } = context
  if (source !== 'catalog' || dryRun) return
  if (carriedOver.unrequested > 0) settledRuns.delete(config)
  else settledRuns.set(config, { runId, snapshot: snapshotOf(context), packages })
}

/** Returns the packages in scope as the run left them on which a refresh may rely; null: it must plan all requests. */
export function settledPackages(
  context: Pick<CatalogContext, 'kind' | 'config' | 'store' | 'source' | 'runId'>,
): PackageScope | null {
  const { config, store, source, runId } = context
  const last = settledRuns.get(config)
  if (!isNarrow(context) || last === undefined) return null
  const isLast = store.runs.findRunBefore(source, runId) === last.runId
  return isLast && last.snapshot === snapshotOf(context) ? last.packages : null
}

/** Describes the packages in scope. */
export function packageScopeOf(packages: readonly Pick<ListedItem, 'id'>[]): PackageScope {
  return { count: packages.length, digest: digestOf(packages.map(({ id }) => id)).toString('hex') }
}

/**
 * Returns what is settled in a refresh that relies on an earlier run: items in scope that it does not cover, if they have stored
 * answers; one that comes into scope has none. Of lists that a refresh does not walk everything is as it was.
 */
export function settledOf(
  { images, tags }: Pick<Scope, 'images' | 'tags'>,
  refreshScope: RefreshScope,
  stored: StoredAnswers,
): Settled {
  const inScope = new Set([...images.map(({ id }) => `images/${id}`), ...tags.map(({ id }) => `tags/${id}`)])
  const owner = (name: string): boolean => {
    const kind = resourceOf(name)
    if (kind === NAMED_BY_OTHERS || !stored.owners().has(name) || refreshScope.covers({ owner: name })) return false
    return !REFRESHED_LISTS.includes(kind) || inScope.has(name)
  }
  return {
    owner,
    missing({ path, resource }) {
      if (resource === NAMED_BY_OTHERS || resource === 'lists') return false
      if (!REFRESHED_LISTS.includes(resource)) return true
      const id = idIn(path, resource)
      return id !== null && owner(`${resource}/${id}`)
    },
  }
}

/** Returns the id of the item that a canonical path of a resource belongs to; null where it has none. */
function idIn(path: string, resource: string): string | null {
  const { item, artifacts } = resourceNamed(resource)
  for (const template of [item ?? '', ...artifacts.map((one) => one.path)]) {
    const id = matchPath(template, path)?.['id']
    if (id !== undefined) return id
  }
  return null
}

/** Returns the digest of a settled item's list entry, as its tasks would have it; null where it is not listed. */
export function listedDigest({ store }: CatalogContext, owner: string): Buffer | null {
  const kind = resourceOf(owner)
  const resource = resourceNamed(kind)
  if (resource.list === null) return NO_OWNER_DIGEST
  const stored = store.catalog.readList(listPathOf(resource))
  const entry = stored && store.catalog.readEntry(stored.id, owner.slice(kind.length + 1))
  return entry?.sha ?? null
}
