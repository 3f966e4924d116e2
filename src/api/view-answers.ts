import { createHash } from 'node:crypto'
import { gzipMember } from '../store/gzip.ts'
import type { ViewRecord, Views } from '../store/views.ts'
import { type JsonResponse, createAnswer } from './answer.ts'
import type { ServedSnapshot } from './moment.ts'
import type { Coding } from './negotiate.ts'
import type { SnapshotOrigin } from './origin.ts'
import { type OtherIds, createOtherIds } from './other-ids.ts'

/** A record of a view as an answer; its tag follows from its bytes alone. */
export function viewRecordAnswer(
  { content, crc32, deflated }: ViewRecord,
  coding: Coding,
  { info }: Pick<Views, 'info'>,
): JsonResponse {
  const tag = createHash('sha256').update(content).digest('hex').slice(0, 32)
  const body = coding === 'gzip' ? gzipMember(deflated, crc32, content.length) : content
  return createAnswer(coding, body, tag, info.changed)
}

/** Says that it is not upstream's bytes, and whose prefixes were taken off. */
export function derivedHead({ prefixes }: { readonly prefixes: readonly string[] }): string[] {
  return prefixes.length === 0
    ? []
    : ['X-Mirror-Derived', prefixes.map(encodeURIComponent).join(', ')]
}

/** What a generation's answers say of where they come from: the moment's own words, as long as both show one snapshot. */
export function createViewOrigins(moment: Pick<ServedSnapshot, 'knownOrigin'>) {
  let made: { readonly views: OriginViews; readonly origin: SnapshotOrigin } | null = null
  return (views: OriginViews): SnapshotOrigin => {
    const now = moment.knownOrigin('osv')
    const { snapshot, asOf } = views.info
    if (now?.snapshot === snapshot) return now
    if (made?.views !== views) {
      const origin = { snapshot, asOf: new Date(asOf).toISOString(), version: views.folder }
      made = { views, origin }
    }
    return made.origin
  }
}

/** What of a generation tells its origin. */
export type OriginViews = Pick<Views, 'info' | 'folder'>

/** A record of a view, and the id by which it is there. */
export interface FoundRecord {
  readonly id: string
  readonly record: ViewRecord
}

/**
 * The one record that is meant by another form of its id (other-ids.ts); null when there is none, or more than one. `read`
 * reads a record by its id.
 */
export function findOtherViewRecord(
  views: OtherViews,
  asked: readonly string[],
  read: (id: string) => ViewRecord | null,
): FoundRecord | null {
  let forms = otherIds.get(views)
  if (forms === undefined) otherIds.set(views, (forms = createOtherIds(views.listUntidyIds)))
  const ids = [...new Set([...asked, ...forms.find(asked)])]
  const found = ids.flatMap((id) => {
    const record = read(id)
    return record === null ? [] : [{ id, record }]
  })
  return found.length === 1 ? (found[0] ?? null) : null
}

/** What of a generation other forms of ids are made from. */
export type OtherViews = Pick<Views, 'listUntidyIds'>

/** Of each generation, as long as it is in use. */
const otherIds = new WeakMap<OtherViews, OtherIds>()
