import { ecosystemsOf } from '../../base/domain/osv-scope.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { counted } from '../../base/text.ts'
import type { OsvReader } from '../../store/osv/reads.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { OsvPlan } from './diff.ts'

type Records = Pick<OsvReader, 'readRecord' | 'eachContent'>

/**
 * Returns why an index must not remove each record of an ecosystem at once, as when a part of the service did not answer; null: it does
 * not, or adds as many, which may be the same under other ids. A release that ended is none: others of its ecosystem stay.
 */
export function emptiedEcosystem(
  records: Records,
  { removed, added }: Pick<OsvPlan, 'removed' | 'added'>,
  vendors: readonly string[],
): string | null {
  const removedOf = new Map<string, string[]>()
  for (const id of removed) {
    const { body = null, size = 0 } = records.readRecord(id) ?? {}
    for (const name of body === null ? [] : namesOf(body, size, vendors)) {
      const ids = removedOf.get(name) ?? []
      ids.push(id)
      removedOf.set(name, ids)
    }
  }
  const gone = new Set(removed)
  for (const [name, ids] of removedOf) {
    const [first] = ids
    if (first === undefined || ids.length < 2 || added.length >= ids.length) continue
    if (!isLeft(records, name, { gone, first, vendors }))
      return `it would remove all ${counted(ids.length, 'record')} of ${name}`
  }
  return null
}

/** Returns whether a record of an ecosystem is left: ids of one are mostly neighbours, so the search begins behind a removed one. */
function isLeft(
  records: Records,
  name: string,
  { gone, first, vendors }: { gone: ReadonlySet<string>; first: string; vendors: readonly string[] },
): boolean {
  const isIn = (rows: ReturnType<Records['eachContent']>): boolean => {
    for (const [id, , size, body] of rows) if (!gone.has(id) && namesOf(body, size, vendors).has(name)) return true
    return false
  }
  return isIn(records.eachContent(first)) || isIn(records.eachContent('', first))
}

/** Returns the ecosystems of a record without their releases, in lower case; none where it cannot be read. */
function namesOf(body: Buffer, size: number, vendors: readonly string[]): Set<string> {
  try {
    const record = JSON.parse(jsonTextOf(contentOf(body, size))) as object | null
    return new Set(ecosystemsOf(record ?? {}).map((one) => withoutRelease(one, vendors)))
  } catch {
    return new Set()
  }
}

function withoutRelease(ecosystem: string, vendors: readonly string[]): string {
  const vendor = vendors.map((one) => `${one.toLowerCase()}:`).find((one) => ecosystem.startsWith(one)) ?? ''
  return vendor + (ecosystem.slice(vendor.length).split(':')[0] ?? '')
}
