import { clip } from '../../../base/text.ts'
import { type Fields, eachObject, fieldsOf, textOfJson } from '../../../base/json/objects.ts'

/** Ranges, and fixed versions, of one package that are described; others are counted. */
const MOST_RANGES = 20
const MOST_VERSIONS = 8

/** An affected package of a record in words; texts are upstream's, cut. Null: the record does not say. */
interface AffectedPackage {
  readonly ecosystem: string | null
  readonly name: string | null
  readonly purl: string | null
  /** Ranges and versions: `from 1.0 before 1.2.3`. */
  readonly affected: readonly string[]
  /** Empty: no fix is named. */
  readonly fixed: readonly string[]
}

/** Describes an element of a record's `affected`, of any form. */
export function describeAffected(affected: unknown): AffectedPackage {
  const fields = fieldsOf(affected)
  const { ecosystem, name, purl } = fieldsOf(fields['package'])
  const ranges = eachObject(fields['ranges'])
  const events = ranges.flatMap(({ type, events }) => eventsOf(type, events))
  const fixed = ranges.flatMap((range) =>
    eachObject(range['events']).flatMap(({ fixed }) => (fixed === undefined ? [] : [clip(textOfJson(fixed), 100)])),
  )
  return {
    ecosystem: nameOf(ecosystem),
    name: nameOf(name),
    purl: typeof purl === 'string' ? purl : null,
    affected: firstOf([...events, ...versionsOf(fields)]),
    fixed: firstOf([...new Set(fixed)]),
  }
}

/** Returns the first of some texts, and how many are left out. */
function firstOf(texts: readonly string[]): string[] {
  const more = texts.length - MOST_RANGES
  return more > 0 ? [...texts.slice(0, MOST_RANGES), `and ${more} more`] : [...texts]
}

function nameOf(value: unknown): string | null {
  return value === undefined || value === null ? null : textOfJson(value)
}

function versionsOf(affected: Fields): string[] {
  const versions: unknown[] = Array.isArray(affected['versions']) ? affected['versions'] : []
  if (versions.length === 0) return []
  const listed = versions.slice(0, MOST_VERSIONS).map((one) => clip(textOfJson(one), 60))
  const more = versions.length - listed.length
  return [`versions ${listed.join(', ')}${more > 0 ? ` and ${more} more` : ''}`]
}

/** Returns a range in words: `from 1.0 before 1.2.3`. */
function eventsOf(type: unknown, value: unknown): string[] {
  const words = eachObject(value).flatMap((event) =>
    Object.entries(event).flatMap(([name, version]) => {
      const word = WORDS.get(name)
      return word === undefined ? [] : [`${word} ${clip(textOfJson(version), 100)}`]
    }),
  )
  if (words.length === 0) return []
  return [clip(`${type === 'GIT' ? 'commits ' : ''}${words.join(' ')}`, 400)]
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['introduced', 'from'],
  ['fixed', 'before'],
  ['last_affected', 'up to'],
  ['limit', 'limit'],
])

/** Severities of a record that are described. */
const MOST_SEVERITIES = 10

/** Returns the severities that a record names, or its packages do, also in the places where the vendor writes its own. */
export function describeSeverity(record: Fields): string[] {
  const own = saidIn(record)
  const said = own.length > 0 ? own : eachObject(record['affected']).flatMap(saidIn)
  return [...new Set(said)].slice(0, MOST_SEVERITIES)
}

function saidIn(fields: Fields): string[] {
  const words = ['database_specific', 'ecosystem_specific'].flatMap((place) => {
    const { severity, urgency, cvss } = fieldsOf(fields[place])
    const stated = [severity, urgency, typeof cvss === 'string' ? cvss : fieldsOf(cvss)['vectorString']]
    return stated.flatMap((one) => (typeof one === 'string' ? [clip(one, 120)] : []))
  })
  const scores = eachObject(fields['severity'])
    .slice(0, MOST_SEVERITIES)
    .map(({ type, score }) => `${clip(textOfJson(type), 40)} ${clip(textOfJson(score), 120)}`)
  return [...words, ...scores]
}
