import { type Slice, elementsOf, membersOf } from '../json/slices.ts'

/** What becomes of one affected package. */
export interface Change {
  /** It stands once for each of these, in their order; at least one. */
  readonly ecosystems: readonly string[]
  /** Its package URL; null: as it is. */
  readonly purl: string | null
  /** The events of its ranges, by the range's place; null, or none: as they are. */
  readonly events: readonly (readonly object[] | null)[]
}

/**
 * The record's text with other affected packages: `changes` has what becomes of each, or null, by its place. Nothing but these
 * values is changed, every other byte is as it was. Where they cannot be found in the text (it takes a strange one), the
 * whole record is written again from `record`, which is the text parsed.
 */
export function changeAffected(
  text: Buffer,
  record: object,
  changes: readonly (Change | null)[],
): Buffer {
  const places = placesOf(text)
  const parts: Buffer[] = []
  let at = 0
  for (const [i, change] of changes.entries()) {
    if (change === null) continue
    const place = places[i]
    if (place === undefined || place === null || place.element.start < at)
      return writeAgain(record, changes)
    parts.push(text.subarray(at, place.element.start), changeElement(text, place, change))
    at = place.element.end
  }
  parts.push(text.subarray(at))
  return Buffer.concat(parts)
}

interface Place {
  readonly element: Slice
  readonly ecosystem: Slice
  readonly purl: Slice | null
  /** The lists of events, by the place of their range; null for a range without one. */
  readonly events: readonly (Slice | null)[]
}

/** Where things stand in each affected package; null for one without an ecosystem. Of repeated names the last counts. */
function placesOf(text: Buffer): (Place | null)[] {
  try {
    const affected = lastMember(text, 0, 'affected')
    if (affected === null) return []
    return [...elementsOf(text, affected.start)].map((element) => placeOf(text, element))
  } catch {
    return []
  }
}

function placeOf(text: Buffer, element: Slice): Place | null {
  const named = lastMember(text, element.start, 'package')
  const ecosystem = named === null ? null : lastMember(text, named.start, 'ecosystem')
  if (named === null || ecosystem === null) return null
  const ranges = lastMember(text, element.start, 'ranges')
  const events = ranges === null ? [] : [...elementsOf(text, ranges.start)]
  return {
    ...{ element, ecosystem, purl: lastMember(text, named.start, 'purl') },
    events: events.map((range) => lastMember(text, range.start, 'events')),
  }
}

function lastMember(text: Buffer, at: number, wanted: string): Slice | null {
  let found: Slice | null = null
  for (const { name, value } of membersOf(text, at)) if (name === wanted) found = value
  return found
}

interface Edit extends Slice {
  readonly to: string
}

function changeElement(text: Buffer, place: Place, { ecosystems, purl, events }: Change): Buffer {
  const common: Edit[] = []
  for (const [i, list] of events.entries()) {
    const slice = place.events[i] ?? null
    if (list !== null && slice !== null) common.push({ ...slice, to: JSON.stringify(list) })
  }
  if (purl !== null && place.purl !== null) common.push({ ...place.purl, to: JSON.stringify(purl) })
  const added = purl !== null && place.purl === null ? `,"purl":${JSON.stringify(purl)}` : ''
  const forms = ecosystems.map((ecosystem) => {
    const own: Edit = { ...place.ecosystem, to: JSON.stringify(ecosystem) + added }
    return applied(text, place.element, [...common, own])
  })
  return Buffer.from(forms.join())
}

function applied(text: Buffer, { start, end }: Slice, edits: Edit[]): string {
  let out = ''
  let at = start
  for (const edit of edits.sort((one, other) => one.start - other.start)) {
    out += text.toString('utf8', at, edit.start) + edit.to
    at = edit.end
  }
  return out + text.toString('utf8', at, end)
}

interface AnyAffected {
  readonly package: object
  readonly ranges?: readonly object[]
}

function writeAgain(record: object, changes: readonly (Change | null)[]): Buffer {
  const { affected } = record as { affected: AnyAffected[] }
  const changed = affected.flatMap((one, i): object[] => {
    const change = changes[i] ?? null
    if (change === null) return [one]
    const { ecosystems, purl, events } = change
    return ecosystems.map((ecosystem) => ({
      ...one,
      package: { ...one.package, ecosystem, ...(purl !== null && { purl }) },
      ...(events.length > 0 && {
        ranges: one.ranges?.map((range, j) => rangeWith(range, events[j])),
      }),
    }))
  })
  return Buffer.from(JSON.stringify({ ...record, affected: changed }))
}

function rangeWith(range: object, events: readonly object[] | null | undefined): object {
  return events === null || events === undefined ? range : { ...range, events }
}
