import { createHash } from 'node:crypto'
import { MirrorError, messageOf } from '../errors.ts'
import type { Facet, Resource } from '../resources.ts'
import type { StagedEntry } from '../store/catalog-staging.ts'
import { withoutSecrets } from './catalog-secrets.ts'

/** A thousand items make a page, and a page is in memory. */
const MAX_ITEM_BYTES = 1_000_000

/** An item as it is kept: upstream's bytes of it, without secrets. Throws `upstream_shape` when it is no object. */
export function entryOf(
  resource: Resource,
  facets: readonly Facet[],
  item: Buffer,
  path: string,
): StagedEntry {
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
    facets: facets.map(({ field }) => facetText(value[field])),
  }
}

function facetText(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
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
  for (const field of ids) {
    const id = value[field]
    if (typeof id === 'string' && id !== '') return id.toWellFormed() // as the database keeps it
    if (typeof id === 'number') return String(id)
  }
  return null
}
