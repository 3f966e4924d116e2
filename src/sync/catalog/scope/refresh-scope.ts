import {
  type EventTarget,
  isNamed,
  namesOf,
  plainRepository,
  textsWithin,
  lookupTexts,
} from '../../../domain/image-reference.ts'
import { canonicalPath } from '../../../domain/path-templates.ts'
import type { CatalogContext } from '../context.ts'
import type { Focus, Walks, Crawl } from '../crawl.ts'
import type { Scope } from './scope.ts'
import { resourceNamed } from '../answers/plan.ts'
import type { StoredAnswer } from '../../../store/catalog/answers.ts'
import { ownsResource } from '../../../domain/resources.ts'
import { entryIdOf } from '../lists/items.ts'
import { refsOf } from './references.ts'

/** The lists that an event can touch. Everything else is left to the polls. */
export const REFRESHED: readonly string[] = ['images', 'tags']

/** Whether a run leaves alone what an event cannot touch. */
export function isNarrow({ kind }: Pick<CatalogContext, 'kind'>): boolean {
  return kind === 'refresh'
}

/** The repositories that events name. */
export function namedRepositories(
  targets: readonly EventTarget[],
): (repository: string) => boolean {
  const named = new Set(targets.map((target) => namesOf(target).repository))
  return (repository) => named.has(repository) || named.has(plainRepository(repository))
}

/** The focus of a run, from the lists that it walked. */
export function focusOf(context: CatalogContext, walks: Walks, scope: Scope): Focus {
  const named = namedOwners(context, scope)
  const names: Focus['names'] = ({ owner }) => named.has(owner)
  if (!isNarrow(context)) return { covers: () => true, names, add: () => undefined }
  const moved = movedOwners(context, walks)
  return {
    covers: ({ owner }) =>
      moved.owners.has(owner) || named.has(owner) || moved.kinds.has(owner.split('/', 1)[0] ?? ''),
    names,
    add: (owner) => void moved.owners.add(owner),
  }
}

/** Tags that events name. Looked up by a text of the item, for events may be as many as tags. */
function namedOwners({ targets }: CatalogContext, { tags }: Scope): Set<string> {
  const all = targets.map(namesOf).filter(({ tag, digest }) => tag !== null || digest !== null)
  const named = new Set<string>()
  if (all.length === 0) return named
  const byText = new Map<string, typeof all>()
  for (const one of all)
    for (const text of [one.tag, one.digest])
      if (text !== null) byText.set(text, [...(byText.get(text) ?? []), one])
  for (const { id, value } of tags) {
    const texts = textsWithin(value)
    const candidates = [...lookupTexts(texts)].flatMap((word) => byText.get(word) ?? [])
    if (candidates.some((one) => isNamed(texts, one))) named.add(`tags/${id}`)
  }
  return named
}

/** Owners that are listed anew or otherwise than they are held; whole kinds whose list is not held yet. */
function movedOwners(
  { store }: CatalogContext,
  { walked }: Walks,
): { owners: Set<string>; kinds: Set<string> } {
  const owners = new Set<string>()
  const kinds = new Set<string>()
  for (const name of REFRESHED) {
    const resource = resourceNamed(name)
    const path = canonicalPath(resource.list?.path ?? '') ?? ''
    const walk = walked.get(path)
    if (walk?.changed !== true) continue
    if (walk.held === null) kinds.add(name)
    else for (const id of store.eachMovedId(walk.held, path)) owners.add(`${name}/${id}`)
  }
  return { owners, kinds }
}

/**
 * What a refresh left alone though it is not in hand: what earlier runs could not have, and what no run asked for yet, as
 * after a change of the settings. Nothing for any other run. As long as there is some, the snapshot is not whole.
 */
export function carriedOver(
  context: CatalogContext,
  { wanted, wantedLists, tried }: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
): Crawl['left'] {
  const { store, source } = context
  const lacking = new Map<string, string>()
  if (!isNarrow(context)) return { lacking, unseen: 0 }
  for (const { path, resource } of store.listMissingPaths()) {
    const isWanted = wanted.has(path) || wantedLists.has(path)
    if (ownsResource(source, resource) && isWanted && !tried.has(path)) lacking.set(path, resource)
  }
  const isUnseen = (path: string): boolean => !tried.has(path) && !lacking.has(path)
  const answers = [...wanted.keys()].filter(
    (path) => isUnseen(path) && !held.has(path) && store.readFetched(path) === null,
  )
  const lists = [...wantedLists].filter(
    (path) => isUnseen(path) && store.readCatalogList(path) === null,
  )
  return { lacking, unseen: answers.length + lists.length }
}

/**
 * Which images' own lists of tags may have changed: those of the images and tags that came, went or changed, by id or
 * repository. `all` when that cannot be told.
 */
export function movedImages({ store }: CatalogContext, { walked }: Walks): Set<string> | 'all' {
  const moved = new Set<string>()
  for (const name of ['images', 'tags']) {
    const resource = resourceNamed(name)
    const path = canonicalPath(resource.list?.path ?? '') ?? ''
    const walk = walked.get(path)
    if (walk?.changed !== true) continue
    if (walk.held === null) return 'all'
    let count = 0
    for (const body of store.eachMoved(walk.held, path)) {
      const value = JSON.parse(body.toString('utf8')) as Record<string, unknown> // checked when it was staged
      const names =
        name === 'images'
          ? [entryIdOf(resource, value)]
          : refsOf(value).flatMap((ref) => (ref.kind === 'image' ? [ref.value] : []))
      for (const one of names) if (one !== null) moved.add(one)
      if (names.length === 0 || names.includes(null)) return 'all'
      count++
    }
    if (count === 0) return 'all' // the same items in another order
  }
  return moved
}
