import type { Config } from '../../../config/schema.ts'
import { readText } from '../../../base/json/field-names.ts'
import { IMAGE_NAME_FIELDS } from '../../../base/json/forms/listed-names.ts'
import { type Pattern, matchesAny, parsePattern } from '../../../base/domain/patterns.ts'
import { refsOf } from './references.ts'
import type { SubscribedKind } from './names.ts'
import { type Subscribed, NAME_FIELDS, resolveSubscriptions, textsIn } from './subscriptions.ts'

/** A listed item with the members that the crawl needs. */
export interface ListedItem {
  id: string
  sha: Buffer
  value: Record<string, unknown>
}

/** Lists from which the scope is computed. */
interface ScopeInput {
  subscriptions: () => Iterable<ListedItem>
  images: () => Iterable<ListedItem>
  tags: () => Iterable<ListedItem>
  packages: () => Iterable<ListedItem>
}

/** An image in scope and the repository under which its tags are listed. */
interface ScopedImage extends ListedItem {
  repo: string | null
}

/** The items whose details and artifacts are mirrored. */
export interface Scope {
  images: ScopedImage[]
  tags: ListedItem[]
  packages: ListedItem[]
  /** Number of subscriptions and those that name nothing listed (id → reason); empty with `catalog.scope: all`. */
  subscriptions: Pick<Subscribed, 'count' | 'unresolved'>
}

/**
 * Computes which images, tags and packages are mirrored with their details: what the account subscribes to, or all
 * (`catalog.scope`), plus and minus `catalog.patterns`. A subscribed tag includes its whole image.
 * While a subscription is not understood, items for which `isStored` returns true stay: one of them may be its target.
 */
export function scopeOf(config: Config['catalog'], input: ScopeInput, isStored: (owner: string) => boolean): Scope {
  const tags = [...input.tags()]
  const all = [...input.images()].map((item) => ({
    ...item,
    repo: readText(item.value, IMAGE_NAME_FIELDS),
  }))
  const imageOf = createImageOf(all)
  const subscribed = config.scope === 'all' ? null : subscribedOf(input, all, tags)
  const rule = createRule(config, subscribed, isStored)
  const imagesOfTags = new Set(tags.filter(({ id }) => rule.subscribed('tag', id)).map(imageOf))
  const images: ScopedImage[] = []
  const inScope = new Set<string>()
  for (const image of all) {
    const names = image.repo === null ? [] : [image.repo]
    const wanted = imagesOfTags.has(image.id) || rule.subscribed('image', image.id)
    if (!rule.covers(wanted, { image: names })) continue
    images.push(image)
    inScope.add(image.id)
  }
  const isTagCovered = (tag: ListedItem): boolean => {
    const image = imageOf(tag)
    if (image !== null) return inScope.has(image)
    return rule.covers(rule.subscribed('tag', tag.id), {})
  }
  const packages: ListedItem[] = []
  for (const item of input.packages()) {
    const ecosystem = readText(item.value, ['ecosystem', 'package_ecosystem']) ?? []
    const names = { package: textsIn(item, NAME_FIELDS), ecosystem }
    if (rule.covers(rule.subscribed('package', item.id), names)) packages.push(item)
  }
  const { count = 0, unresolved = new Map<string, string>() } = subscribed ?? {}
  return { images, tags: tags.filter(isTagCovered), packages, subscriptions: { count, unresolved } }
}

function subscribedOf(input: ScopeInput, image: readonly ListedItem[], tag: readonly ListedItem[]): Subscribed {
  return resolveSubscriptions(input.subscriptions(), { image, tag, package: input.packages() })
}

/** Returns a function that finds the id of a tag's image; null: the image is not listed. */
function createImageOf(images: readonly ScopedImage[]): (tag: ListedItem) => string | null {
  const ids = new Set(images.map(({ id }) => id))
  const idOf = new Map(images.flatMap(({ id, repo }) => (repo === null ? [] : [[repo, id]])))
  return ({ value: tag }) => {
    for (const { kind, value } of refsOf(tag)) {
      if (kind !== 'image') continue
      if (ids.has(value)) return value
      const id = idOf.get(value)
      if (id !== undefined) return id
    }
    return null
  }
}

type Names = Parameters<typeof matchesAny>[1]

function createRule(config: Config['catalog'], subscribed: Subscribed | null, isStored: (owner: string) => boolean) {
  const include = config.include.map(parsePattern).filter(isPattern)
  const exclude = config.exclude.map(parsePattern).filter(isPattern)
  const keeps = subscribed !== null && subscribed.unresolved.size > 0
  return {
    subscribed: (kind: SubscribedKind, id: string): boolean =>
      subscribed?.ids[kind].has(id) === true || (keeps && isStored(`${kind}s/${id}`)),
    covers: (wanted: boolean, names: Names): boolean =>
      (wanted || config.scope === 'all' || matchesAny(include, names)) && !matchesAny(exclude, names),
  }
}

function isPattern(pattern: Pattern | null): pattern is Pattern {
  return pattern !== null
}
