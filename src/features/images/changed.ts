import { requestedPath } from '../../server/catalog/not-found.ts'
import { RESOURCES } from '../../base/domain/resources.ts'
import { MirrorError } from '../../base/errors.ts'
import type { Fields } from '../../base/json/objects.ts'
import type { CatalogAnswer } from '../../store/catalog/answers.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { sincePlace } from '../lookup/since.ts'

const ITEM = RESOURCES.find(({ name }) => name === 'tags')?.item ?? ''

/** Which tags are not as they were in an earlier snapshot of the catalog. */
export interface ChangedTags {
  /** The earlier snapshot, hex. */
  readonly snapshot: string
  /** Whether a tag was there and named this digest; null: not known, as where only its entry in the list is mirrored. */
  isUnchanged(id: string, digest: string): boolean | null
}

/**
 * Reads the log of changes; a date: the catalog was first stored then, after the time that was named, so all of it is new here. Throws
 * as `sincePlace`, and `not_ready` where the log does not name what changed.
 */
export function changedSince(reads: Reads, since: string, now: number): ChangedTags | { readonly firstStored: number } {
  const place = sincePlace(reads, 'catalog', since, now)
  if (place.firstStored !== null) return { firstStored: place.firstStored }
  const span = { ...place, until: reads.changes.readLatestLogged('catalog')?.id ?? place.after }
  const names = reads.changes.countNames(span)
  if (names === null)
    throw new MirrorError(
      'not_ready',
      `what changed in the catalog since ${since} is not logged by name: list all of it`,
    )
  const changed = new Set(reads.changes.listChanged(span, '', names).map(({ name }) => name))
  return {
    snapshot: place.snapshot,
    isUnchanged(id, digest) {
      const path = requestedPath(ITEM, { id })
      if (changed.has(path)) return false
      const answer = reads.catalog.readAnswer(path)
      const stored = answer === null ? null : digestIn(answer)
      return stored === null ? null : stored === digest
    },
  }
}

/** Returns the digest that the details of a tag name; null where they name none, or cannot be read. */
function digestIn({ body, size }: Pick<CatalogAnswer, 'body' | 'size'>): string | null {
  if (body === null) return null
  try {
    return namesOfTag(JSON.parse(contentOf(body, size).toString('utf8')) as Fields).digest
  } catch {
    return null // damaged: a check of the data names it
  }
}
