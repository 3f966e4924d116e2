import { type Random, createRandom } from './random.ts'
import { type Representation, jsonRepresentation } from './representation.ts'
import type { MatrixForm, Shape } from '../service/shapes/shape.ts'
import { fieldName } from '../service/shapes/record.ts'
import { type Platform, PACKAGES, TARGETS, patchedVersion } from './vocabulary.ts'

/** The feeds beside the OSV records: patch feed, CVE feed, system matrix (wire facts, public feeds). */
export interface World {
  /** Undefined for an ecosystem the service does not know. */
  patchFeed(filters: FeedFilters): Representation | undefined
  cveFeed(filters: FeedFilters): Representation | undefined
  sysMatrix(): Representation
  /** Adds a fix to a few packages; returns them as `alpine/3.18/curl`. */
  touch(lastModified: number): string[]
}

/** The patch feed's query parameters; "" and null both mean no filter. */
export interface FeedFilters {
  ecosystem: string | null
  os_distro_major: string | null
  package_src_name: string | null
}

interface Fix {
  version: string
  cves: { id: string; severity: string }[]
}

interface Release {
  target: Platform
  packages: Map<string, Fix[]>
}

const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']
const CODE_NAMES: Readonly<Record<string, string>> = {
  '11': 'bullseye',
  '12': 'bookworm',
  '13': 'trixie',
  '20.04': 'focal',
  '22.04': 'jammy',
  '24.04': 'noble',
}

/** The patch feed, CVE feed and system matrix of a seed; `lastModified` in unix milliseconds. */
export function createWorld(seed: number, lastModified: number, shape: Shape): World {
  const random = createRandom(seed, 0x7eed)
  let all: Release[] | null = null // at the first use: most users read only the records
  const releases = (): Release[] => (all ??= TARGETS.map((target) => createRelease(random, target)))
  const matrix = jsonRepresentation(Buffer.from(JSON.stringify(sysMatrix(shape.matrix))), lastModified)
  const cache = new Map<string, Representation>()
  let at = lastModified
  const render = (kind: 'patch' | 'cve', filters: FeedFilters): Representation | undefined => {
    const known = TARGETS.some((target) => target.feed === filters.ecosystem)
    if (filters.ecosystem && !known) return undefined
    const key = JSON.stringify([kind, filters])
    const cached = cache.get(key)
    if (cached !== undefined) return cached
    const isTree = kind === 'cve' || shape.feed === 'tree'
    const body = isTree ? tree(releases(), filters, kind) : otherFeed(releases(), filters, shape)
    const bytes = Buffer.from(JSON.stringify(body))
    const made = jsonRepresentation(bytes, at)
    if (cache.size < 200) cache.set(key, made)
    return made
  }
  return {
    patchFeed: (filters) => render('patch', filters),
    cveFeed: (filters) => render('cve', filters),
    sysMatrix: () => matrix,
    touch(changedAt) {
      cache.clear()
      at = changedAt
      return Array.from({ length: 3 }, () => addFix(random, random.pick(releases())))
    },
  }
}

function createRelease(random: Random, target: Platform): Release {
  const names = PACKAGES[target.feed].filter(() => random.chance(0.9)).sort()
  const release: Release = { target, packages: new Map(names.map((name) => [name, []])) }
  for (const fixes of release.packages.values()) {
    const upstream = `${random.int(12)}.${random.int(30)}.${random.int(20)}`
    const count = random.between(1, 6)
    for (let n = 1; n <= count; n++) fixes.push(createFix(random, target, upstream, n))
  }
  return release
}

function createFix(random: Random, target: Platform, upstream: string, n: number): Fix {
  const cves = Array.from({ length: random.between(1, 4) }, () => ({
    id: `CVE-${random.between(2014, 2026)}-${random.between(1000, 49_999)}`,
    severity: random.pick(SEVERITIES),
  }))
  return { version: patchedVersion(target, upstream, n), cves }
}

function addFix(random: Random, { target, packages }: Release): string {
  const name = random.pick([...packages.keys()])
  const fixes = packages.get(name) ?? []
  const upstream = `${random.between(12, 40)}.${random.int(30)}.${fixes.length}`
  fixes.push(createFix(random, target, upstream, 1))
  return [target.feed, target.distroVersion, name].join('/')
}

/** Ecosystems stay as keys even when filtered empty; releases without packages are removed. */
function tree(releases: Release[], filters: FeedFilters, kind: 'patch' | 'cve'): object {
  const result: Record<string, object[]> = {}
  for (const { target, packages } of releases) {
    if (filters.ecosystem && filters.ecosystem !== target.feed) continue
    const list = (result[target.feed] ??= [])
    if (filters.os_distro_major && filters.os_distro_major !== target.distroVersion) continue
    const name = filters.package_src_name
    const wanted = [...packages].filter(([pkg]) => !name || pkg === name)
    if (wanted.length === 0) continue
    const archs = target.distroVersion === '' ? ['noarch'] : ['x86_64', 'aarch64']
    const shown = wanted.map(([pkg, fixes]) => ({ pkg: { name: pkg, ...detail(fixes, kind) } }))
    list.push({ distroversion: target.distroVersion, archs, packages: shown })
  }
  return result
}

/** The patch feed of the shapes that have no tree. */
function otherFeed(releases: Release[], filters: FeedFilters, shape: Shape): object {
  return shape.feed === 'keyed' ? keyed(releases, filters) : rows(releases, filters, shape)
}

function isAsked({ target }: Release, filters: FeedFilters): boolean {
  const { ecosystem, os_distro_major: release } = filters
  return (!ecosystem || ecosystem === target.feed) && (!release || release === target.distroVersion)
}

/** The patch feed as objects by distribution, release, package and CVE. */
function keyed(releases: Release[], filters: FeedFilters): object {
  const result: Record<string, Record<string, object>> = {}
  for (const release of releases.filter((one) => isAsked(one, filters))) {
    const { target, packages } = release
    const name = filters.package_src_name
    const wanted = [...packages].filter(([pkg]) => !name || pkg === name)
    const shown = wanted.map(([pkg, fixes]) => [pkg, fixedBy(fixes)])
    const inner = (result[target.feed] ??= {})
    inner[target.distroVersion || 'any'] = Object.fromEntries(shown) as object
  }
  return result
}

/** The fixed version of each CVE. */
function fixedBy(fixes: readonly Fix[]): object {
  return Object.fromEntries(fixes.flatMap(({ version, cves }) => cves.map(({ id }) => [id, version])))
}

/** The patch feed as a table: a row for each fixed version of a package. */
function rows(releases: Release[], filters: FeedFilters, { feed, records }: Shape): object {
  const asked = releases.filter((one) => isAsked(one, filters))
  const found = asked.flatMap(({ target, packages }) =>
    [...packages].flatMap(([name, fixes]) => {
      if (filters.package_src_name && filters.package_src_name !== name) return []
      const about = {
        ecosystem: target.feed,
        os_distro_major: target.distroVersion,
        package_src_name: name,
      }
      return fixes.map(({ version, cves }) => {
        const fix = { fixed_version: version, cve_ids: cves.map(({ id }) => id) }
        const named = Object.entries({ ...about, ...fix }).map(([field, value]) => {
          return [fieldName(records, field), value]
        })
        return Object.fromEntries(named) as object
      })
    }),
  )
  return feed === 'rows' ? found : { data: found }
}

function detail(fixes: Fix[], kind: 'patch' | 'cve'): object {
  if (kind === 'patch') {
    return {
      secfixes: Object.fromEntries(fixes.map((fix) => [fix.version, fix.cves.map((c) => c.id)])),
    }
  }
  const cves = fixes.flatMap(({ version, cves }) =>
    cves.map(({ id, severity }) => [id, { vulnerable_ranges: [`<${version}`], fixed_versions: [version], severity }]),
  )
  return { cves: Object.fromEntries(cves) as object }
}

function sysMatrix(form: MatrixForm): object {
  const ecosystems: Record<string, object[]> = {}
  const languages: string[] = []
  for (const { feed, distroVersion } of TARGETS) {
    if (distroVersion === '') languages.push(feed)
    else {
      const list = (ecosystems[feed] ??= [])
      list.push({
        major_version: distroVersion,
        dev_code_name: CODE_NAMES[distroVersion] ?? '',
        support_scope: 'full',
      })
    }
  }
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ architecture, os: 'linux' }))
  if (form === 'array') return TARGETS.map(({ feed, distroVersion }) => ({ name: feed, release: distroVersion }))
  return { ecosystems, package_ecosystems: languages, platforms }
}
