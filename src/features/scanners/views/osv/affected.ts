import { normalName } from '../../../../base/identity/names.ts'
import { findEcosystem } from '../../../../base/versions/ecosystems.ts'
import { eachObject, fieldsOf } from '../../../../base/json/objects.ts'
import { purlNames } from '../../../../base/identity/package.ts'
import { writePurl } from '../../../../base/identity/purl.ts'
import { confirmedEvents } from '../../../../documents/records/affected.ts'
import { orderOfType } from '../../../../base/versions/semver.ts'
import { folderOf } from '../../store/generations.ts'
import type { PackageChange, Stripped } from './ecosystems.ts'

/**
 * What becomes of an affected package in a derived record: its ecosystems without the vendor's prefix; a package URL that
 * names it there (Dependency-Track passes over packages without one), as the OSV schema has it: without version and
 * qualifiers; and of a range whose upper bound its ecosystem cannot read, only what another bound confirms, for some
 * scanners take such a bound for none. `ecosystem` is the recorded one, '' for none. Null: nothing.
 */
export function changeOf(affected: unknown, ecosystem: string, stripped: Stripped | null): PackageChange | null {
  const { package: named, ranges } = fieldsOf(affected)
  const base = stripped?.base ?? folderOf(ecosystem)
  const purl = purlFor(base, fieldsOf(named))
  if (stripped !== null) return { ecosystems: stripped.ecosystems, purl, events: eventsOf(ranges, ecosystem) }
  return purl === null ? null : { ecosystems: [ecosystem], purl, events: [] }
}

/** Packages that are remembered: many records name the same. */
const REMEMBERED = { packages: 2_000, characters: 300 }
const written = new Map<string, string | null>()

/** Null where the record has one that names this package already, and where there is none for the ecosystem. */
function purlFor(base: string, { name, purl }: Readonly<Record<string, unknown>>): string | null {
  if (typeof name !== 'string') return null
  const recorded = typeof purl === 'string' ? purl : ''
  const key = `${base.length} ${name.length} ${base}${name}${recorded}`
  const known = written.get(key)
  if (known !== undefined) return known
  const made = makePurl(base, name, recorded)
  if (written.size >= REMEMBERED.packages) written.clear()
  if (key.length <= REMEMBERED.characters) written.set(key, made)
  return made
}

function makePurl(base: string, name: string, purl: string): string | null {
  const named = purl === '' ? null : purlNames(purl)
  const known = named?.ecosystem === base && normalName(base, named.name) === normalName(base, name)
  return known ? null : writePurl(base, name)
}

function eventsOf(ranges: unknown, ecosystem: string): PackageChange['events'] {
  const own = findEcosystem(ecosystem)?.order ?? null
  const list: unknown[] = Array.isArray(ranges) ? ranges : []
  return list.map((range) => {
    const { type, events, database_specific: specific } = fieldsOf(range)
    const order = orderOfType(type, own)
    // what is left out is said there
    return order === null || specific !== undefined ? null : confirmedEvents([...eachObject(events)], order)
  })
}
