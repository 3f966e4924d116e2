import { REFRESHED_LISTS } from '../../../base/domain/event-types.ts'
import {
  type EventTarget,
  isNamed,
  isSpecific,
  namesOf,
  plainRepository,
  textsWithin,
  lookupTexts,
} from '../../../base/domain/image-reference.ts'
import type { CatalogContext } from '../context.ts'
import type { RefreshScope, Walks, Crawl } from '../crawl.ts'
import type { Scope } from './scope.ts'
import { versionsPathOf } from '../answers/plan.ts'
import type { StoredAnswers } from '../../../store/catalog/answers.ts'
import { parseReplaced } from '../../../store/catalog/lists.ts'
import { ownsResource, resourceNamed, listPathOf, resourceOf } from '../../../base/domain/resources.ts'
import { entryIdOf } from '../lists/items.ts'
import { refsOf } from './references.ts'

/** Returns whether a run covers only what an event can change. */
export function isNarrow({ kind }: Pick<CatalogContext, 'kind'>): boolean {
  return kind === 'refresh'
}

/** Returns a test for the repositories that events name. */
export function namedRepositories(targets: readonly EventTarget[]): (repository: string) => boolean {
  const named = new Set(targets.map((target) => namesOf(target).repository))
  return (repository) => named.has(repository) || named.has(plainRepository(repository))
}

/** Returns the scope of a run's requests, from the lists that it walked. */
export function refreshScopeOf(context: CatalogContext, walks: Walks, scope: Scope): RefreshScope {
  const named = namedOwners(context, scope)
  const names: RefreshScope['names'] = ({ owner }) => named.has(owner)
  if (!isNarrow(context)) return { covers: () => true, names, add: () => undefined }
  const changed = changedOwners(context, walks)
  return {
    covers: ({ owner }) =>
      changed.owners.has(owner) || named.has(owner) || (changed.kinds.size > 0 && changed.kinds.has(resourceOf(owner))),
    names,
    add: (owner) => void changed.owners.add(owner),
  }
}

/** Returns the tags that events name. Events are indexed by text, because there may be as many events as tags. */
function namedOwners({ targets }: CatalogContext, { tags }: Scope): Set<string> {
  const all = targets.map(namesOf).filter(isSpecific)
  const named = new Set<string>()
  if (all.length === 0) return named
  const byText = new Map<string, typeof all>()
  for (const one of all)
    for (const text of [one.tag, one.digest]) if (text !== null) byText.set(text, [...(byText.get(text) ?? []), one])
  for (const { id, value } of tags) {
    const texts = textsWithin(value)
    const candidates = [...lookupTexts(texts)].flatMap((word) => byText.get(word) ?? [])
    if (candidates.some((one) => isNamed(texts, one))) named.add(`tags/${id}`)
  }
  return named
}

/** Returns the owners that are new or changed in their list, and the kinds whose list was not stored before. */
function changedOwners({ store }: CatalogContext, { walked }: Walks): { owners: Set<string>; kinds: Set<string> } {
  const owners = new Set<string>()
  const kinds = new Set<string>()
  for (const name of REFRESHED_LISTS) {
    const resource = resourceNamed(name)
    const path = listPathOf(resource)
    const walk = walked.get(path)
    if (walk?.changed !== true) continue
    if (walk.stored === null) kinds.add(name)
    else for (const id of store.catalog.eachMovedId(walk.stored, path)) owners.add(`${name}/${id}`)
  }
  return { owners, kinds }
}

/**
 * Returns the missing paths that a refresh did not request: those that earlier runs failed to fetch, and those never
 * requested, as after a change of the settings. Empty for other runs. While there are any, the snapshot is not
 * complete.
 */
export function carriedOver(
  context: CatalogContext,
  { wanted, wantedLists, requested, settled }: Crawl,
  stored: StoredAnswers,
): Crawl['carriedOver'] {
  const { store, source } = context
  const missing: Crawl['carriedOver']['missing'] = new Map()
  if (!isNarrow(context)) return { missing, unrequested: 0 }
  for (const one of store.catalog.listMissingPaths()) {
    const { path, resource } = one
    const isWanted =
      wanted.has(path) || wantedLists.has(path) || settled.missing(one) || wanted.has(versionsPathOf(path))
    if (ownsResource(source, resource) && isWanted && !requested.has(path)) missing.set(path, one)
  }
  const isUnrequested = (path: string): boolean => !requested.has(path) && !missing.has(path)
  const answers = [...wanted.keys()].filter(
    (path) => isUnrequested(path) && !stored.has(path) && store.catalog.readFetched(path) === null,
  )
  const lists = [...wantedLists].filter((path) => isUnrequested(path) && store.catalog.readList(path) === null)
  return { missing, unrequested: answers.length + lists.length }
}

/**
 * Returns the images whose own lists of tags may have changed, by id or repository: those of the images and tags that
 * were added, removed or changed. `all` when that is unknown.
 */
export function changedImages({ store }: CatalogContext, { walked }: Walks): Set<string> | 'all' {
  const changed = new Set<string>()
  for (const name of ['images', 'tags']) {
    const resource = resourceNamed(name)
    const path = listPathOf(resource)
    const walk = walked.get(path)
    if (walk?.changed !== true) continue
    if (walk.stored === null) return 'all'
    let count = 0
    for (const body of store.catalog.eachMoved(walk.stored, path)) {
      const value = parseReplaced(body)
      if (value === null) return 'all'
      const names =
        name === 'images'
          ? [entryIdOf(resource, value)]
          : refsOf(value).flatMap((ref) => (ref.kind === 'image' ? [ref.value] : []))
      for (const one of names) if (one !== null) changed.add(one)
      if (names.length === 0 || names.includes(null)) return 'all'
      count++
    }
    if (count === 0) return 'all' // the same items in another order
  }
  return changed
}
