import { resourceNamed, listPathOf } from '../../../base/domain/resources.ts'
import { NAMES_NOT_FOUND, namesAreFound } from '../../../base/json/forms/listed-names.ts'
import type { Fields } from '../../../base/json/objects.ts'
import type { SyncResult } from '../../context.ts'
import type { CatalogContext } from '../context.ts'
import type { Walks } from '../crawl.ts'
import { itemsOf } from './walk.ts'

/** Items of a list whose names are looked for. */
const SAMPLE = 100

/** Returns the walked lists whose items have no names: what they do not name cannot be denied, nor asked for by name. */
export function namelessLists(context: CatalogContext, walks: Walks): string[] {
  const names = context.config.upstream.catalogUrl === null ? ['images'] : ['images', 'packages']
  return names.flatMap((name) => {
    const path = listPathOf(resourceNamed(name))
    if (!walks.walked.has(path)) return []
    const items = sampleOf(context, walks, name)
    return items.length === 0 || namesAreFound(items, name) ? [] : [path]
  })
}

function sampleOf(context: CatalogContext, walks: Walks, name: string): Fields[] {
  const sample: Fields[] = []
  for (const { value } of itemsOf(context, walks, resourceNamed(name))) {
    sample.push(value)
    if (sample.length === SAMPLE) break
  }
  return sample
}

/** Returns the result of a run with the lists without names: it is partial then. */
export function withNameless(result: SyncResult, nameless: readonly string[]): SyncResult {
  if (nameless.length === 0) return result
  const outcome = result.outcome === 'complete' ? 'partial' : result.outcome
  return {
    ...result,
    outcome,
    message: `${result.message}; ${nameless.join(', ')}: ${NAMES_NOT_FOUND}`,
  }
}
