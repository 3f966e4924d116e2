import type { Config } from '../../../config/schema.ts'
import { REFRESHED_LISTS } from '../../../domain/event-types.ts'
import { canonicalPath, matchPath } from '../../../domain/path-templates.ts'
import type { StoredAnswers } from '../../../store/catalog/answers.ts'
import { NO_OWNER_DIGEST, resourceNamed } from '../answers/plan.ts'
import type { CatalogContext } from '../context.ts'
import type { Crawl, RefreshScope, Settled } from '../crawl.ts'
import type { Scope } from './scope.ts'
import { isNarrow } from './refresh-scope.ts'

/** Settled where every request is planned. */
export const NONE_SETTLED: Settled = { owner: () => false, missing: () => false }

/** Artifact sets: which of them are wanted depends on what other answers name. */
const NAMED_BY_OTHERS = 'avrs'

/**
 * The snapshot of the catalog in which a run of this process left nothing unrequested, by the settings of the run: the scope
 * follows from them. Other settings, another process, or an import may leave another state.
 */
const settledSnapshots = new WeakMap<Config, string>()

function snapshotOf({ store, source }: Pick<CatalogContext, 'store' | 'source'>): string {
  const snapshot = store.snapshots.readSnapshot(source)
  return snapshot === null ? '' : `${snapshot.id} ${snapshot.runId}`
}

/** Records that a run has published or confirmed its result, so that the next refresh can rely on it. */
export function recordSettled(context: CatalogContext, { carriedOver }: Crawl): void {
  const { source, config, dryRun } = context
  if (source !== 'catalog' || dryRun || carriedOver.unrequested > 0) return
  settledSnapshots.set(config, snapshotOf(context))
}

/** Returns whether a run is a refresh of a snapshot that an earlier run of this process left with nothing unrequested. */
export function continuesSettled(
  context: Pick<CatalogContext, 'kind' | 'config' | 'store' | 'source'>,
): boolean {
  return isNarrow(context) && settledSnapshots.get(context.config) === snapshotOf(context)
}

/**
 * Returns what is settled in a refresh for which `continuesSettled` is true: items in scope that it does not cover, if they have
 * stored answers; one that comes into scope has none. Of lists that a refresh does not walk everything is as it was.
 */
export function settledOf(
  { images, tags }: Pick<Scope, 'images' | 'tags'>,
  refreshScope: RefreshScope,
  stored: StoredAnswers,
): Settled {
  const inScope = new Set([
    ...images.map(({ id }) => `images/${id}`),
    ...tags.map(({ id }) => `tags/${id}`),
  ])
  const owner = (name: string): boolean => {
    const [kind = ''] = name.split('/', 1)
    if (
      kind === NAMED_BY_OTHERS ||
      !stored.owners().has(name) ||
      refreshScope.covers({ owner: name })
    )
      return false
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
  const [kind = ''] = owner.split('/', 1)
  const { list } = resourceNamed(kind)
  if (list === null) return NO_OWNER_DIGEST
  const stored = store.catalog.readList(canonicalPath(list.path) ?? list.path)
  const entry = stored && store.catalog.readEntry(stored.id, owner.slice(kind.length + 1))
  return entry?.sha ?? null
}
