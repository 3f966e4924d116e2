import { eachObject, fieldsOf, isObject, jsonTextOf } from '../../../base/json/objects.ts'
import { normalName } from '../../../base/identity/names.ts'
import type { Views } from '../store/reads.ts'

/** Ecosystems that osv-offline knows, with the types of the package URLs by which it compares. */
const TYPES = new Map([
  ['Go', 'golang'],
  ['Hackage', 'hackage'],
  ['Hex', 'hex'],
  ['Maven', 'maven'],
  ['NuGet', 'nuget'],
  ['Packagist', 'composer'],
  ['Pub', 'pub'],
  ['PyPI', 'pypi'],
  ['RubyGems', 'gem'],
  ['crates.io', 'cargo'],
  ['npm', 'npm'],
])

/** Names of the ecosystems of which osv-offline, and so Renovate, reads a database. */
export const RENOVATE_ECOSYSTEMS: readonly string[] = [...TYPES.keys()]

/** Returns the file that osv-offline reads for an ecosystem, below its root directory. */
export function renovateFile(ecosystem: string): string {
  return `${ecosystem.toLowerCase()}.nedb`
}

/**
 * Returns the file of an ecosystem line by line: each record as its view shows it, which is not withdrawn (osv-offline gives those
 * as well). Throws `corrupt` for damaged views.
 */
export function* renovateLines(views: Views, ecosystem: string): Generator<Buffer> {
  for (const { content } of views.eachViewRecord(ecosystem)) {
    const line = lineOf(JSON.parse(jsonTextOf(content)), ecosystem)
    if (line !== null) yield Buffer.from(`${line}\n`)
  }
}

/** Two signs that JSON leaves as they are end a line for the reader of osv-offline, which then skips the record in silence. */
const LINE_ENDS = /[\u2028\u2029]/g

function lineOf(record: unknown, ecosystem: string): string | null {
  if (!isObject(record) || Boolean(record['withdrawn'])) return null
  const affected = eachObject(record['affected']).flatMap((entry) => namedEntries(entry, ecosystem))
  const text = JSON.stringify({ ...record, affected })
  return text.replace(LINE_ENDS, (sign) => `\\u${sign.charCodeAt(0).toString(16)}`)
}

/** Names a package as osv-offline compares it: by the package URL, and by the very name, which Renovate normalises for PyPI. */
function namedEntries(entry: object, ecosystem: string): object[] {
  const named = fieldsOf(fieldsOf(entry)['package'])
  const { name, ecosystem: recorded } = named
  if (typeof name !== 'string' || typeof recorded !== 'string') return [entry]
  if (recorded !== ecosystem && !recorded.startsWith(`${ecosystem}:`)) return [entry]
  const names = new Set([name, normalName(ecosystem, name)])
  return [...names].map((one) => ({
    ...entry,
    package: { ...named, name: one, purl: purlOf(ecosystem, one) },
  }))
}

function purlOf(ecosystem: string, name: string): string {
  const path = ecosystem === 'Maven' ? name.replace(':', '/') : name
  return `pkg:${TYPES.get(ecosystem) ?? ''}/${path.split('/').map(encodeURIComponent).join('/')}`
}
