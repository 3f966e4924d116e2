import { resolveField } from '../base/json/field-names.ts'
import { type Fields, eachObject, fieldsOf, isObject, textOfJson } from '../base/json/objects.ts'
import { findEcosystem } from '../base/versions/ecosystems.ts'
import type { VersionOrder } from '../base/versions/order.ts'
import { NATURAL } from './kinds.ts'

/** An entry of a feed of patches: a vulnerability of a package in a release, and the versions that fix it. */
interface FeedEntry {
  readonly family: string
  readonly release: string
  readonly versions: readonly string[]
}

/** An entry that went, or whose fix is lower. */
interface LostEntry {
  readonly name: string
  readonly because: string
  /** Whether its whole release went, and a newer one was there before and still is. */
  readonly isEnded: boolean
}

/** Compares two versions of a feed of patches: the tree of Alpine's secdb (wire facts), rows, or objects by names. */
export function lostEntries(before: unknown, after: unknown): { lost: LostEntry[]; total: number } {
  const old = entriesOf(before)
  const now = entriesOf(after)
  const releases = new Set([...now.values()].map(releaseName))
  const lost: LostEntry[] = []
  for (const [name, entry] of old) {
    const next = now.get(name)
    const isEnded = next === undefined && isEndedRelease(entry, releases)
    if (next === undefined) lost.push({ name, because: 'not listed any more', isEnded })
    else {
      const lowered = loweredFix(entry, next)
      if (lowered !== null) lost.push({ name, because: lowered, isEnded: false })
    }
  }
  return { lost, total: old.size }
}

function entriesOf(feed: unknown): Map<string, FeedEntry> {
  for (const read of [treeEntries, rowEntries, keyedEntries]) {
    const entries = read(feed)
    if (entries.size > 0) return entries
  }
  return new Map()
}

/** Fields of a row, in any spelling, the first that it has. */
const FIELDS = {
  family: ['ecosystem', 'distro', 'family'],
  release: ['os_distro_major', 'distroversion', 'distro_version', 'release'],
  name: ['package_src_name', 'package_name', 'package', 'name'],
  cves: ['cve_ids', 'cve_id', 'cves', 'cve', 'vulnerability_id', 'vulnerability'],
  fixes: ['fixed_versions', 'fixed_version', 'fix_version', 'patched_version', 'fixed_in', 'fixed'],
} as const

/** Reads rows, at the top or within an object: `[{"package_src_name": "curl", "cve_id": "CVE-…", "fixed_version": "8.1-r7"}]`. */
function rowEntries(feed: unknown): Map<string, FeedEntry> {
  const entries = new Map<string, FeedEntry>()
  const lists = Array.isArray(feed) ? [feed] : Object.values(fieldsOf(feed))
  const rows = lists.flatMap((list) => [...eachObject(list)])
  const [first = {}] = rows
  const named = (fields: readonly string[]): string | undefined =>
    fields.map((field) => resolveField(field, Object.keys(first))[0]).find((name) => name !== undefined)
  const { family, release, name, cves, fixes } = {
    family: named(FIELDS.family),
    release: named(FIELDS.release),
    name: named(FIELDS.name),
    cves: named(FIELDS.cves),
    fixes: named(FIELDS.fixes),
  }
  if (name === undefined || cves === undefined || fixes === undefined) return entries
  for (const row of rows) {
    const at = (field: string | undefined): string => (field === undefined ? '' : textOfJson(row[field]))
    const place = { family: at(family), release: at(release) }
    for (const cve of textsOf(row[cves])) {
      const key = `${place.family} ${place.release} ${at(name)} ${cve}`
      const versions = [...(entries.get(key)?.versions ?? []), ...textsOf(row[fixes])]
      entries.set(key, { ...place, versions })
    }
  }
  return entries
}

/** Reads objects by the names of what they are about: `{"alpine": {"3.18": {"curl": {"CVE-…": "8.1-r7"}}}}`. */
function keyedEntries(feed: unknown, above: readonly string[] = []): Map<string, FeedEntry> {
  const entries = new Map<string, FeedEntry>()
  if (!isObject(feed) || above.length > MOST_NAMES) return entries
  const [family = '', release = ''] = above
  for (const [name, inner] of Object.entries(feed)) {
    const path = [...above, name]
    if (isObject(inner)) for (const [key, entry] of keyedEntries(inner, path)) entries.set(key, entry)
    else if (IDENTIFIER.test(name)) entries.set(path.join(' '), { family, release, versions: textsOf(inner) })
  }
  return entries
}

/** Names above a version: of an ecosystem, a release, a package and a vulnerability. */
const MOST_NAMES = 5
const IDENTIFIER = /^[A-Z][A-Z0-9]*-.*\d/

function textsOf(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string')
}

function treeEntries(feed: unknown): Map<string, FeedEntry> {
  const entries = new Map<string, FeedEntry>()
  for (const [family, rows] of Object.entries(fieldsOf(feed)))
    for (const row of eachObject(rows))
      for (const { pkg } of eachObject(row['packages'])) {
        const release = textOf(row['distroversion'])
        const place = `${family} ${release} ${textOf(fieldsOf(pkg)['name'])}`
        for (const [cve, versions] of fixesOf(fieldsOf(pkg)))
          entries.set(`${place} ${cve}`, { family, release, versions })
      }
  return entries
}

/** The vulnerabilities of a package with the versions that fix them: of `secfixes`, and of `cves` in the older form. */
function fixesOf({ secfixes, cves }: Fields): Map<string, string[]> {
  const fixes = new Map<string, string[]>()
  const add = (cve: string, version: string): void => {
    const known = fixes.get(cve)
    if (known === undefined) fixes.set(cve, [version])
    else known.push(version)
  }
  for (const [version, listed] of Object.entries(fieldsOf(secfixes)))
    for (const cve of Array.isArray(listed) ? listed : []) add(textOf(cve), version)
  for (const [cve, about] of Object.entries(fieldsOf(cves))) {
    const { fixed_versions: fixed } = fieldsOf(about)
    if (isObject(about) && !fixes.has(cve)) fixes.set(cve, [])
    for (const version of Array.isArray(fixed) ? fixed : []) add(cve, textOf(version))
  }
  return fixes
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function releaseName({ family, release }: FeedEntry): string {
  return `${family} ${release}`
}

function isEndedRelease(entry: FeedEntry, releases: ReadonlySet<string>): boolean {
  if (releases.has(releaseName(entry))) return false
  return [...releases].some((other) => {
    const [family = '', release = ''] = other.split(' ')
    return family === entry.family && NATURAL.compare(release, entry.release) > 0
  })
}

/** Says that the lowest fix is lower; null: it is not, or cannot be compared and is the same. */
function loweredFix({ family, versions }: FeedEntry, next: FeedEntry): string | null {
  if (versions.length === 0 || sameTexts(versions, next.versions)) return null
  const order = orderOf(family)
  const before = lowest(versions, order)
  const after = lowest(next.versions, order)
  if (before === null || after === null || order === null)
    return `fixes changed from ${versions.join(', ')} to ${next.versions.join(', ')}`
  const isLower = order.compare(order.read(after), order.read(before)) < 0
  return isLower ? `fix lowered from ${before} to ${after}` : null
}

function sameTexts(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text) => other.includes(text))
}

function lowest(versions: readonly string[], order: VersionOrder | null): string | null {
  const [first = null] = versions
  if (order === null || first === null || versions.some((one) => order.read(one) === null)) return null
  return versions.reduce((low, one) => (order.compare(order.read(one), order.read(low)) < 0 ? one : low), first)
}

const FAMILIES: ReadonlyMap<string, string> = new Map([
  ['alpine', 'Alpine'],
  ['debian', 'Debian'],
  ['ubuntu', 'Ubuntu'],
  ['pypi', 'PyPI'],
  ['npm', 'npm'],
  ['maven', 'Maven'],
])

function orderOf(family: string): VersionOrder | null {
  const name = FAMILIES.get(family.toLowerCase())
  return name === undefined ? null : (findEcosystem(name)?.order ?? null)
}
