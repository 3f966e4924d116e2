import type { StoredAnswer } from '../store/catalog-answers.ts'
import { ownsResource } from '../resources.ts'
import type { CatalogContext } from './catalog-context.ts'
import type { Crawl } from './catalog-crawl.ts'
import { isNarrow } from './catalog-focus.ts'

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
  for (const { path, resource } of store.listLacking()) {
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
