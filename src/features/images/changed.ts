import { requestedPath } from '../../server/catalog/not-found.ts'
import { RESOURCES } from '../../base/domain/resources.ts'
import { MirrorError } from '../../base/errors.ts'
import type { Reads } from '../../store/reads.ts'
import { sincePlace } from '../lookup/since.ts'

const ITEM = RESOURCES.find(({ name }) => name === 'tags')?.item ?? ''

/** Which tags are not as they were in an earlier snapshot of the catalog. */
export interface ChangedTags {
  /** The earlier snapshot, hex. */
  readonly snapshot: string
  /** Whether the details of a tag are others than they were, or new. */
  hasChanged(id: string): boolean
}

/**
 * Reads the log of changes. Null where nothing of the catalog was stored then: all of it is new. Throws as `sincePlace`, and
 * `not_ready` where the log does not name what changed.
 */
export function changedSince(reads: Reads, since: string, now: number): ChangedTags | null {
  const place = sincePlace(reads, 'catalog', since, now, 'list all of it, without --since')
  if (place.firstStored !== null) return null
  const span = { ...place, until: reads.changes.readLatestLogged('catalog')?.id ?? place.after }
  const names = reads.changes.countNames(span)
  if (names === null)
    throw new MirrorError(
      'not_ready',
      `what changed in the catalog since ${since} is not logged by name: list all of it, without --since`,
    )
  const changed = new Set(reads.changes.listChanged(span, '', names).map(({ name }) => name))
  return { snapshot: place.snapshot, hasChanged: (id) => changed.has(requestedPath(ITEM, { id })) }
}
