import type { Views, ViewRecord } from '../store/reads.ts'
import { findMembers } from '../members.ts'
import { fieldsOf, jsonTextOf } from '../../../base/json/objects.ts'
import { type Slice, elementsOf } from '../../../base/json/slices.ts'

/** What of a generation the one body of a record is made from. */
export type BodyViews = Pick<Views, 'readDerivedRecord'>

/** A record as the query API shows it. */
interface OneBody {
  readonly content: Buffer
  /** Vendor prefixes that were taken off in entries beside upstream's. */
  readonly prefixes: readonly string[]
}

/**
 * Returns the body that a record has everywhere in the query API: upstream's, with the derived entries behind its own in
 * `affected`. A client that finds a record as a package of `PyPI`, and then reads it by its id, finds the fix there. Null:
 * there are no derived entries, so upstream's bytes are the body.
 */
export function oneBodyOf(views: BodyViews, id: string, upstream: Buffer): OneBody | null {
  const derived = views.readDerivedRecord(id)
  if (derived === null) return null
  return { content: withDerived(upstream, derived), prefixes: derived.prefixes }
}

const AFFECTED = Buffer.from('affected')

/** Adds what the derived form has in `affected`, and upstream's has not; nothing else of upstream's bytes is changed. */
function withDerived(upstream: Buffer, { content }: Pick<ViewRecord, 'content'>): Buffer {
  const text = Buffer.from(jsonTextOf(upstream))
  const own = entriesOf(text)
  const last = own.at(-1)
  if (last === undefined) return writtenAgain(text, content)
  const known = new Set(own.map((slice) => textIn(text, slice)))
  const added = entriesOf(content)
    .map((slice) => textIn(content, slice))
    .filter((entry) => !known.has(entry))
  if (added.length === 0) return text
  const inserted = Buffer.from(`,${added.join()}`)
  return Buffer.concat([text.subarray(0, last.end), inserted, text.subarray(last.end)])
}

function entriesOf(text: Buffer): Slice[] {
  try {
    const [list = null] = findMembers(text, 0, [AFFECTED])
    return list === null ? [] : [...elementsOf(text, list.start)]
  } catch {
    return []
  }
}

function textIn(text: Buffer, { start, end }: Slice): string {
  return text.toString('utf8', start, end)
}

/** For a text whose entries cannot be found in its bytes. */
function writtenAgain(upstream: Buffer, derived: Buffer): Buffer {
  const record = fieldsOf(JSON.parse(jsonTextOf(upstream)))
  const { affected } = fieldsOf(JSON.parse(jsonTextOf(derived)))
  const own: unknown[] = Array.isArray(record['affected']) ? record['affected'] : []
  const more: unknown[] = Array.isArray(affected) ? affected : []
  return Buffer.from(JSON.stringify({ ...record, affected: [...own, ...more] }))
}
