import { prose, sentence } from './text-generator.ts'
import type { Random } from './random.ts'
import type { Topic } from './topic.ts'
import { patchedName, patchedVersion } from './vocabulary.ts'

/** What a record is about; the rest of it follows from the random stream. */
export interface Subject extends Topic {
  id: string
  modified: string
  published: string
  /** Whether it may be without its `schema_version`, which OSV requires of a record. */
  malformed: boolean
  /** Bytes the record should have, about; small records cannot go below their fields. */
  size: number
}

const MARK = '@@DETAILS@@'
const SEVERITIES = ['low', 'medium', 'high', 'critical']
/** Vectors whose scores are of the class that a word names. */
const VECTORS: Readonly<Record<string, readonly string[]>> = {
  low: [
    'CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N', // 3.1
    'CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:N/I:L/A:N', // 3.3
    'CVSS:3.0/AV:L/AC:H/PR:L/UI:N/S:U/C:L/I:N/A:N', // 2.5
  ],
  medium: [
    'CVSS:3.1/AV:L/AC:L/PR:H/UI:N/S:U/C:L/I:L/A:L', // 4.2
    'CVSS:3.1/AV:L/AC:H/PR:L/UI:R/S:U/C:N/I:L/A:H', // 5.0
    'CVSS:3.0/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N', // 6.4
  ],
  high: [
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H', // 7.5
    'CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H', // 8.8
    'CVSS:3.0/AV:L/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:H', // 7.8
  ],
  critical: [
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H', // 9.8
    'CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:H/I:H/A:H', // 9.9
    'CVSS:3.0/AV:A/AC:L/PR:N/UI:N/S:C/C:H/I:N/A:H', // 9.3
  ],
}

type Json = Record<string, unknown>

/** One OSV record's exact bytes, in the shape and with the irregularities seen in the wild (wire facts). */
export function buildRecord(random: Random, subject: Subject): Buffer {
  const format = pickFormat(random)
  const text = format.write(fields(random, subject))
  const missing = Math.max(0, subject.size - text.length + MARK.length)
  const details = JSON.stringify(prose(random, Math.max(60, missing))).slice(1, -1)
  return Buffer.from(text.replace(MARK, () => format.escape(details)))
}

function fields(random: Random, subject: Subject): Json {
  const { target, vulnerability } = subject
  const severity = random.pick(SEVERITIES)
  const record: Json = {}
  const bare = random.chance(0.18) && subject.malformed
  if (!bare) record['schema_version'] = random.chance(0.7) ? '1.6.0' : '1.6.1'
  record['id'] = subject.id
  record['modified'] = subject.modified
  record['published'] = subject.published
  if (random.chance(0.02)) record['withdrawn'] = subject.modified
  if (vulnerability !== '') record['upstream'] = [vulnerability]
  if (random.chance(0.05)) record['aliases'] = [vulnerability]
  record['summary'] = sentence(random)
  record['details'] = MARK
  if (random.chance(0.45)) record['severity'] = [{ type: 'CVSS_V3', score: random.pick(VECTORS[severity] ?? []) }]
  record['affected'] = affected(random, subject)
  record['database_specific'] = {
    distro: target.distro,
    distro_version: target.distroVersion,
    source: 'Root',
    severity: random.chance(0.5) ? severity : severity.toUpperCase(),
  }
  return record
}

function affected(random: Random, subject: Subject): Json[] {
  const { target, name, isFixed, isUpstreamListed, size } = subject
  const packages = isUpstreamListed ? [name] : []
  const addPatched = (one: string): void => {
    if (isFixed) packages.push(patchedName(target.feed, one))
  }
  addPatched(name)
  for (let budget = size - 5000; budget > 0; budget -= random.between(1200, 9000))
    addPatched(`${name}-${random.int(100_000).toString(36)}`)
  const each = size > 5000 ? (size * 0.55) / packages.length : 0
  return packages.map((pkg) => oneAffected(random, subject, pkg, each))
}

function oneAffected(random: Random, subject: Subject, name: string, bytes: number): Json {
  const { target, isFixed } = subject
  const upstream = `${random.int(12)}.${random.int(30)}.${random.int(20)}`
  const fixes = 1 + (random.chance(0.3) ? random.between(1, 3) : 0)
  const fixed = Array.from({ length: isFixed ? fixes : 0 }, (_, i) => patchedVersion(target, upstream, i + 1))
  const entry: Json = {
    package: { ecosystem: target.ecosystem, name },
    ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...fixed.map((v) => ({ fixed: v }))] }],
    database_specific: {
      all_fixed_versions: fixed,
      root_patch_version: fixed.at(-1),
      root_patched: isFixed,
      total_fixed_versions: fixed.length,
      upstream_version: upstream,
    },
  }
  if (bytes > 700) entry['versions'] = versions(random, bytes - 500)
  return entry
}

/** A list of old versions that takes about `bytes` bytes as compact JSON. */
function versions(random: Random, bytes: number): string[] {
  const list: string[] = []
  for (let left = bytes; left > 0;) {
    const version = `${list.length >> 4}.${random.int(40)}.${random.int(1000)}-r${random.int(100)}`
    list.push(version)
    left -= version.length + 3
  }
  return list
}

interface Format {
  write(record: Json): string
  escape(text: string): string
}

const same = (text: string): string => text
const ascii = (text: string): string =>
  text.replace(/[\u0080-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))

/** Compact, indented, another key order, escaped, with a final line end: all of it occurs. */
function pickFormat(random: Random): Format {
  const roll = random.next()
  if (roll < 0.55) return { write: (r) => JSON.stringify(r), escape: same }
  if (roll < 0.75) return { write: (r) => JSON.stringify(r, null, 2), escape: same }
  if (roll < 0.8) return { write: (r) => JSON.stringify(r, null, 2) + '\n', escape: ascii }
  if (roll < 0.9) return { write: (r) => JSON.stringify(sorted(r)), escape: same }
  const turned = (r: Json): string => JSON.stringify(Object.fromEntries(Object.entries(r).reverse()))
  return { write: turned, escape: ascii }
}

function sorted(record: Json): Json {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}
