import { createHash } from 'node:crypto'
import { MirrorError, messageOf } from '../errors.ts'
import { readText } from '../json/field-names.ts'
import type { Resource } from '../resources.ts'
import type { StagedEntry } from '../store/catalog-staging.ts'
import type { FacetReader } from './catalog-facets.ts'
import { withoutSecrets } from './catalog-secrets.ts'

/** A thousand items make a page, and a page is in memory. */
const MAX_ITEM_BYTES = 1_000_000

/** The items of a page as they are kept. Throws `upstream_shape` for one that is no object. */
export function entriesOf(
  resource: Resource,
  facets: FacetReader,
  items: readonly Buffer[],
  path: string,
): StagedEntry[] {
  const read = items.map((item) => readItem(resource, item, path))
  for (const { value } of read) facets.learn(value) // all of them before the first is read
  return read.map(({ value, ...entry }) => ({ ...entry, facets: facets.read(value) }))
}

/** An item as upstream's bytes of it, without secrets. */
function readItem(
  resource: Resource,
  item: Buffer,
  path: string,
): Omit<StagedEntry, 'facets'> & { value: Record<string, unknown> } {
  if (item.length > MAX_ITEM_BYTES) {
    const message = `${path}: an item has ${item.length} bytes, more than ${MAX_ITEM_BYTES}`
    throw new MirrorError('upstream_too_large', message)
  }
  const body = resource.secrets ? withoutSecrets(item, path) : item
  const value = parseItem(body, path)
  const sha = createHash('sha256').update(body).digest().subarray(0, 16)
  return {
    id: idOf(resource, value) ?? `-${sha.toString('hex')}`,
    body: Buffer.from(body), // the item alone, not the page that it is a part of
    sha,
    value,
  }
}

function parseItem(item: Buffer, path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(item.toString('utf8'))
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: an item is not JSON (${messageOf(error)})`)
  }
  throw new MirrorError('upstream_shape', `${path}: an item is no object`)
}

/** An item's own identifier; null when it has none. */
export function idOf({ ids }: Resource, value: Record<string, unknown>): string | null {
  return readText(value, ids)?.toWellFormed() ?? null // as the database keeps it
}
