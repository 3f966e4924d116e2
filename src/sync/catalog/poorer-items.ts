import { counted } from '../../base/text.ts'
import { readText } from '../../base/json/field-names.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { IMAGE_NAME_FIELDS } from '../../base/json/forms/listed-names.ts'
import type { Fields } from '../../base/json/objects.ts'
import { listedRelease } from '../../base/json/releases.ts'
import { listPathOf, resourceNamed, resourceOf } from '../../base/domain/resources.ts'
import type { FetchedAnswer } from '../../store/catalog/answer-writes.ts'
import { parseReplaced } from '../../store/catalog/lists.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl } from './crawl.ts'
import { entryIdOf } from './lists/items.ts'
import { refsOf } from './scope/references.ts'

/** Counts what of a listed item says which further paths belong to it. */
const NAMES: Readonly<Record<string, (item: Fields) => readonly boolean[]>> = {
  images: (item) => [readText(item, IMAGE_NAME_FIELDS) !== null],
  tags: (item) => [refsOf(item).some(({ kind }) => kind === 'image')],
  packages(item) {
    const release = listedRelease(item)
    return [release !== null, typeof release?.version === 'string']
  },
}

/** What leaves the scope because items that are listed do not name it any more. */
interface Unnamed {
  readonly paths: readonly string[]
  /** Why that is no evidence that it is gone; null: no such item. */
  readonly reason: string | null
}

/**
 * Returns what a run would remove because listed items have lost the fields that named it: the image of a tag, the release of a
 * package, the repository of an image, the artifact sets of any. Another value says what it is now; no value says nothing.
 */
export function unnamedByItems(
  context: CatalogContext,
  crawl: Crawl,
  { answers, lists }: { answers: readonly { path: string; owner: string }[]; lists: readonly string[] },
): Unnamed {
  if (answers.length + lists.length === 0) return { paths: [], reason: null }
  const poorer = Object.keys(NAMES).flatMap((name) => poorerItems(context, crawl, name))
  const kinds = new Set(poorer.map(resourceOf))
  const lost = context.store.catalog.listLostMentions()
  const unnamed = new Set([...poorer, ...lost.map(([set]) => `avrs/${set}`)])
  const owners = new Set([...poorer, ...lost.map(([, owner]) => owner)])
  const paths = [
    ...answers.filter(({ owner }) => unnamed.has(owner)).map(({ path }) => path),
    ...(kinds.has('images') ? lists : []),
  ].sort()
  if (paths.length === 0) return { paths, reason: null }
  const items = counted(owners.size, 'item that is listed and does', 'items that are listed and do')
  return { paths, reason: `it would remove ${counted(paths.length, 'answer')} of ${items} not name them any more` }
}

/** Returns whether an answer about an item mentions no artifact set any more. */
export function losesSets(
  { store: { catalog } }: CatalogContext,
  { path, resource, status, mentions }: Pick<FetchedAnswer, 'path' | 'resource' | 'status' | 'mentions'>,
): boolean {
  if (resource === 'releases' || status !== 200 || mentions.length > 0) return false
  return (catalog.readAnswer(path)?.mentions.length ?? 0) > 0
}

/** Returns the listed items of a resource that name less than the stored ones, as `resource/id`. */
function poorerItems({ store: { catalog } }: CatalogContext, { walks }: Crawl, name: string): string[] {
  const resource = resourceNamed(name)
  const path = listPathOf(resource)
  const walk = walks.walked.get(path)
  if (walk?.changed !== true || walk.stored === null) return []
  const namesOf = (item: Fields): readonly boolean[] => NAMES[name]?.(fieldsOfItem(item, name)) ?? []
  const poorer: string[] = []
  for (const [body, before] of catalog.eachMovedPair(walk.stored, path)) {
    const item = parseReplaced(body)
    const replaced = before === null ? null : parseReplaced(before)
    const id = item === null ? null : entryIdOf(resource, item)
    if (item === null || replaced === null || id === null) continue
    const now = namesOf(item)
    if (namesOf(replaced).some((isNamed, at) => isNamed && now[at] !== true)) poorer.push(`${name}/${id}`)
  }
  return poorer
}
