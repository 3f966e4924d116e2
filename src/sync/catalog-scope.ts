import type { Config } from '../config/schema.ts'
import { readText } from '../json/field-names.ts'
import { type Pattern, matchesAny, parsePattern } from '../patterns.ts'
import { refsOf } from './catalog-refs.ts'

/** An item as it is listed, with what the crawl needs of it. */
export interface ListedItem {
  id: string
  sha: Buffer
  value: Record<string, unknown>
}

/** What the scope is worked out from: the lists, walked. */
export interface ScopeInput {
  subscriptions: Iterable<ListedItem>
  images: Iterable<ListedItem>
  tags: Iterable<ListedItem>
  packages: Iterable<ListedItem>
}

/** An image in scope, and the repository that its tags are listed under. */
export interface ScopedImage extends ListedItem {
  repo: string | null
}

/** The items whose details and artifacts are mirrored. */
export interface Scope {
  images: ScopedImage[]
  tags: ListedItem[]
  packages: ListedItem[]
}

const REPO_FIELDS = [
  'repository',
  'repo',
  'image_repo',
  'image_repository',
  'repo_name',
  'repository_name',
  'name',
  'image_name',
]
const NAME_FIELDS = ['name', 'src_name', 'package_src_name', 'package_name']

/**
 * Which images, tags and packages are mirrored with their details: what the account subscribes to, or all
 * (`catalog.scope`), and what `catalog.include` names, without what `catalog.exclude` names. A subscribed tag brings
 * its whole image.
 */
export function scopeOf(config: Config['catalog'], input: ScopeInput): Scope {
  const rule = createRule(config, input.subscriptions)
  const images: ScopedImage[] = []
  const inScope = new Set<string>()
  const nameOf = new Map<string, string>()
  const idOf = new Map<string, string>()
  const tags = [...input.tags]
  const all = [...input.images].map((item) => ({
    ...item,
    repo: readText(item.value, REPO_FIELDS),
  }))
  for (const { id, repo } of all) {
    if (repo === null) continue
    nameOf.set(id, repo)
    idOf.set(repo, id)
  }
  const imageOf = (item: ListedItem): string | null => {
    for (const { kind, value } of refsOf(item.value)) {
      if (kind !== 'image') continue
      if (nameOf.has(value)) return value
      const id = idOf.get(value)
      if (id !== undefined) return id
    }
    return null
  }
  const taken = new Set(tags.filter(({ id }) => rule.subscribed('tag', [id])).map(imageOf))
  for (const image of all) {
    const names = image.repo === null ? [] : [image.repo]
    const wanted = taken.has(image.id) || rule.subscribed('image', [image.id, ...names])
    if (!rule.holds(wanted, { image: names })) continue
    images.push(image)
    inScope.add(image.id)
  }
  const tagHolds = (tag: ListedItem): boolean => {
    const image = imageOf(tag)
    if (image !== null) return inScope.has(image)
    return rule.holds(rule.subscribed('tag', [tag.id]), {})
  }
  return {
    images,
    tags: tags.filter(tagHolds),
    packages: [...input.packages].filter(({ id, value }) => {
      const ecosystem = readText(value, ['ecosystem', 'package_ecosystem']) ?? []
      const names = { package: texts(value, NAME_FIELDS), ecosystem }
      return rule.holds(rule.subscribed('package', [id]), names)
    }),
  }
}

type Names = Parameters<typeof matchesAny>[1]

function createRule(config: Config['catalog'], subscriptions: Iterable<ListedItem>) {
  const include = config.include.map(parsePattern).filter(isPattern)
  const exclude = config.exclude.map(parsePattern).filter(isPattern)
  const subscribed = new Set<string>()
  for (const { value } of subscriptions) {
    for (const ref of refsOf(value)) subscribed.add(`${ref.kind} ${ref.value}`)
  }
  return {
    subscribed: (kind: 'image' | 'tag' | 'package', ids: readonly string[]): boolean =>
      ids.some((id) => subscribed.has(`${kind} ${id}`)),
    holds: (wanted: boolean, names: Names): boolean =>
      (wanted || config.scope === 'all' || matchesAny(include, names)) &&
      !matchesAny(exclude, names),
  }
}

function isPattern(pattern: Pattern | null): pattern is Pattern {
  return pattern !== null
}

function texts(value: Record<string, unknown>, fields: readonly string[]): string[] {
  return fields.map((field) => readText(value, [field])).filter((text) => text !== null)
}
