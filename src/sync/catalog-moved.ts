import { canonicalPath } from '../paths.ts'
import type { CatalogContext } from './catalog-context.ts'
import type { Walks } from './catalog-crawl.ts'
import { entryIdOf } from './catalog-entries.ts'
import { refsOf } from './catalog-refs.ts'
import { resourceNamed } from './catalog-tasks.ts'

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
