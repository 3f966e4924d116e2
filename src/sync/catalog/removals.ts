import { counted } from '../../base/text.ts'
import { ownsResource, resourceOf } from '../../base/domain/resources.ts'
import type { StoredAnswer, StoredAnswers } from '../../store/catalog/answers.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl } from './crawl.ts'
import type { RemovedItems } from './removed-items.ts'

/** How many of the removed names a run has in its facts. */
export const NAMED = 20

/** Responses and lists that nothing needs any more, and what upstream does not have any more. */
interface Removals {
  readonly answers: readonly Pick<StoredAnswer, 'path' | 'owner'>[]
  readonly lists: readonly { readonly path: string }[]
  readonly removed: readonly RemovedItems[]
}

/** Returns the stored answers that are no longer in scope. While their owner's list fails, they stay in scope. */
export function listGone(
  { source }: CatalogContext,
  { wanted, settled }: Crawl,
  stored: StoredAnswers,
): Pick<StoredAnswer, 'path' | 'owner'>[] {
  const isOwn = (owner: string): boolean => ownsResource(source, resourceOf(owner))
  const others = stored.ofOwners((owner) => isOwn(owner) && !settled.owner(owner))
  return [...others].filter(({ path }) => !wanted.has(path))
}

/** Records what a run removes: how many responses and lists, and the first paths of them. */
export function noteRemovals(facts: CatalogContext['facts'], { answers, lists }: Omit<Removals, 'removed'>): void {
  const paths = [...answers, ...lists].map(({ path }) => path)
  facts['removed'] = paths.length
  if (paths.length > 0) facts['removedIds'] = paths.slice(0, NAMED)
}

/**
 * Returns what is removed in words, by what it belongs to: `11 answers of 3 packages and 1 tag, 1 list, 4 items of 2 lists`. Without
 * names: the public status repeats these words, and the names are private.
 */
export function removalWords({ answers, lists, removed }: Removals): string {
  const listed = removed.filter(({ resource }) => resource !== null)
  const items = listed.reduce((sum, { gone }) => sum + gone.length, 0)
  const artifacts = removed.find(({ key }) => key === 'artifacts')?.gone.length ?? 0
  const owners = new Set(answers.map(({ owner }) => owner))
  const kinds = Map.groupBy(owners, (owner) => resourceOf(owner))
  const of = [...kinds].map(([kind, { length }]) => counted(length, NOUNS[kind] ?? kind.replace(/s$/, '')))
  const words = [
    ...(answers.length === 0 ? [] : [`${counted(answers.length, 'answer')} of ${of.join(' and ')}`]),
    ...(lists.length === 0 ? [] : [counted(lists.length, 'list')]),
    ...(items === 0 ? [] : [`${counted(items, 'item')} of ${counted(listed.length, 'list')}`]),
    ...(artifacts === 0 ? [] : [`${counted(artifacts, 'artifact')} (404, 204 or empty)`]),
  ]
  return words.length === 0 ? '0' : words.join(', ')
}

/** Kinds whose items are named by another word. */
const NOUNS: Readonly<Partial<Record<string, string>>> = {
  apiKeys: 'key',
  avrs: 'artifact set',
}
