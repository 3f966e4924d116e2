import {
  type EventTarget,
  isNamed,
  namesOf,
  plainRepository,
  textsWithin,
  wordsIn,
} from '../event-target.ts'
import { canonicalPath } from '../paths.ts'
import type { CatalogContext } from './catalog-context.ts'
import type { Focus, Walks } from './catalog-crawl.ts'
import type { Scope } from './catalog-scope.ts'
import { resourceNamed } from './catalog-tasks.ts'

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
    const candidates = [...wordsIn(texts)].flatMap((word) => byText.get(word) ?? [])
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
