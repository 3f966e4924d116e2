import { type Slice, elementsOf, membersOf } from '../json/slices.ts'

/**
 * The record's text with other ecosystems: `ecosystems` has a new one, or null, for each affected package by its place.
 * Nothing but these texts is changed, every other byte is as it was. Where they cannot be found in the text (it takes a
 * strange one), the whole record is written anew from `record`, which is the text parsed.
 */
export function replaceEcosystems(
  text: Buffer,
  record: object,
  ecosystems: readonly (string | null)[],
): Buffer {
  const places = placesOf(text)
  const parts: Buffer[] = []
  let at = 0
  for (const [i, ecosystem] of ecosystems.entries()) {
    if (ecosystem === null) continue
    const place = places[i]
    if (place === undefined || place === null || place.start < at)
      return writeAnew(record, ecosystems)
    parts.push(text.subarray(at, place.start), Buffer.from(JSON.stringify(ecosystem)))
    at = place.end
  }
  parts.push(text.subarray(at))
  return Buffer.concat(parts)
}

/** Where the ecosystem of each affected package stands; null for one that has none. Of repeated names the last counts. */
function placesOf(text: Buffer): (Slice | null)[] {
  try {
    const affected = lastMember(text, 0, 'affected')
    if (affected === null) return []
    return [...elementsOf(text, affected.start)].map((element) => {
      const named = lastMember(text, element.start, 'package')
      return named === null ? null : lastMember(text, named.start, 'ecosystem')
    })
  } catch {
    return []
  }
}

function lastMember(text: Buffer, at: number, wanted: string): Slice | null {
  let found: Slice | null = null
  for (const { name, value } of membersOf(text, at)) if (name === wanted) found = value
  return found
}

function writeAnew(record: object, ecosystems: readonly (string | null)[]): Buffer {
  const { affected } = record as { affected: { package: object }[] }
  const changed = affected.map((one, i) => {
    const ecosystem = ecosystems[i] ?? null
    return ecosystem === null ? one : { ...one, package: { ...one.package, ecosystem } }
  })
  return Buffer.from(JSON.stringify({ ...record, affected: changed }))
}
