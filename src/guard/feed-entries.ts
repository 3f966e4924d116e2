import { type Fields, eachObject, fieldsOf, isObject } from '../base/json/objects.ts'
import { findEcosystem } from '../base/versions/ecosystems.ts'
import type { VersionOrder } from '../base/versions/order.ts'

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

/** Compares two versions of a feed of patches (wire facts: the shape of Alpine's secdb). */
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

const NATURAL = new Intl.Collator('en', { numeric: true })

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
