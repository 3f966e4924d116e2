import { createHash } from 'node:crypto'
import { MirrorError, messageOf } from '../errors.ts'
import { readText } from '../json/field-names.ts'
import type { Skipped } from '../json/frame.ts'
import type { CatalogResource } from '../resources.ts'
import type { StagedEntry } from '../store/catalog-staging.ts'
import type { WalkedPage } from '../upstream/pages.ts'
import type { FacetReader } from './catalog-facets.ts'
import { withoutSecrets } from './catalog-secrets.ts'

/** What no id has that can be told in a line, or asked for as a path. */
const CONTROL = /\p{Cc}/u

/** A thousand items make a page, and a page is in memory. */
const MAX_ITEM_BYTES = 1_000_000

/** What a page of a list holds. */
interface Taken {
  entries: StagedEntry[]
  /** The items that could not be taken; null when all could. */
  refused: Skipped | null
}

/** The items of a page as they are kept. Throws `upstream_shape` when none of them can be: it is no such list. */
export function entriesOf(
  resource: CatalogResource,
  facets: FacetReader,
  { items, number }: Pick<WalkedPage, 'items' | 'number'>,
  path: string,
): Taken {
  const reasons: string[] = []
  const read = items.flatMap((item, at) => {
    try {
      return [readItem(resource, item)]
    } catch (error) {
      if (!(error instanceof MirrorError)) throw error
      reasons.push(`item ${at + 1} of page ${number + 1}: ${error.message}`)
      return []
    }
  })
  for (const { value } of read) facets.learn(value) // all of them before the first is read
  const entries = read.map(({ value, ...entry }) => ({ ...entry, facets: facets.read(value) }))
  const [why] = reasons
  if (why === undefined) return { entries, refused: null }
  if (read.length === 0 && number === 0) throw new MirrorError('upstream_shape', `${path}: ${why}`)
  return { entries, refused: { page: number, count: reasons.length, why: why.slice(0, 300) } }
}

/** An item as upstream's bytes of it, without secrets. */
function readItem(
  resource: CatalogResource,
  item: Buffer,
): Omit<StagedEntry, 'facets'> & { value: Record<string, unknown> } {
  if (item.length > MAX_ITEM_BYTES) {
    const message = `it has ${item.length} bytes, more than ${MAX_ITEM_BYTES}`
    throw new MirrorError('upstream_too_large', message)
  }
  const body = resource.secrets ? withoutSecrets(item, resource.name) : item
  const value = parseItem(body)
  const sha = createHash('sha256').update(body).digest().subarray(0, 16)
  const id = entryIdOf(resource, value)
  if (id !== null && CONTROL.test(id))
    throw new MirrorError('upstream_shape', 'its id has a line break or another control character')
  return {
    id: id ?? `-${sha.toString('hex')}`,
    body: Buffer.from(body), // the item alone, not the page that it is a part of
    sha,
    value,
  }
}

function parseItem(item: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(item.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch (error) {
    throw new MirrorError('upstream_shape', `it is not JSON (${messageOf(error)})`)
  }
  throw new MirrorError('upstream_shape', 'it is no object')
}

/** The identifier of an item given as JSON; null when it has none, or is no object. */
export function idOfItem(resource: CatalogResource, item: Buffer): string | null {
  try {
    return entryIdOf(resource, parseItem(item))
  } catch {
    return null // what is wrong with it is reported where it would be stored
  }
}

/** An item's own identifier; null when it has none. */
export function entryIdOf({ ids }: CatalogResource, value: Record<string, unknown>): string | null {
  return readText(value, ids)?.toWellFormed() ?? null // as the database keeps it
}
