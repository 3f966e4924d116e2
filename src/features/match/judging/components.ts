import { type Identity, type Surroundings, identifyComponent } from '../../../base/identity/identity.ts'
import { readRelease } from '../../../base/identity/releases.ts'
import type { SbomComponent } from '../../../documents/sboms/sbom.ts'
import type { MatchedComponent, NotJudged } from './finding.ts'

/** References of a component that are listed; all are counted. */
const MAX_REFS = 100

/** Why a component is not judged, or not completely. */
export type Why = Pick<NotJudged, 'code' | 'reason'>

/** A package of an SBOM, and who it is; null: it is not known, for a reason. */
export interface IdentifiedPackage {
  readonly component: MatchedComponent
  readonly identity: Identity | null
  readonly why: Why | null
}

/** What of a component says who it is. */
type Facts = Pick<SbomComponent, 'purl' | 'name' | 'version' | 'source' | 'kind'>

/** Longest package URL and version that are looked for, characters: far above real ones, and below where an SBOM is cut. */
const LONGEST = 1024

/** Returns who a component is, or why it is not known; what is no package is only looked for where its purl names one. */
export function identityOf(facts: Facts, around: Surroundings): Identity | Why {
  if (Math.max(facts.purl?.length ?? 0, facts.version.length) > LONGEST) return TOO_LONG
  const found = identifyComponent(facts, around)
  if (!('code' in found)) return found
  const isUnknown = found.code === 'no_purl' || found.code === 'unknown_ecosystem'
  if (facts.kind === null || !isUnknown) return found
  return { code: 'no_package', reason: `it is ${facts.kind}, and no package` }
}

const TOO_LONG: Why = {
  code: 'bad_purl',
  reason: `its package URL or version is longer than ${LONGEST} characters`,
}

/**
 * Returns the different packages of an SBOM, with who they are: by purl, version and source package, those without a purl by
 * name, version and what they are. `check` is called for each component, and throws to stop.
 */
export function identifyAll(
  components: readonly SbomComponent[],
  around: Surroundings,
  check: () => void,
): IdentifiedPackage[] {
  const known = new Map<string, { readonly of: SbomComponent; readonly refs: Set<string> }>()
  for (const one of components) {
    check()
    const key = keyOf(one)
    const same = known.get(key) ?? { of: one, refs: new Set() }
    known.set(key, same)
    if (one.ref !== '') same.refs.add(one.ref)
  }
  return [...known.values()].map(({ of, refs }) => {
    check()
    return identified(of, refs, around)
  })
}

function keyOf({ purl, name, version, source, kind }: SbomComponent): string {
  if (purl === null) return JSON.stringify([name, version, kind])
  // A package URL may be in lower case though the name is not: npm tells such packages apart.
  const ownName = name === name.toLowerCase() ? '' : name
  return JSON.stringify([purl, version, ownName, source?.name ?? '', source?.version ?? ''])
}

function identified(of: SbomComponent, refs: ReadonlySet<string>, around: Surroundings): IdentifiedPackage {
  const { name, version, purl } = of
  const found = identityOf(of, around)
  const listed = { name, purl, refs: [...refs].slice(0, MAX_REFS), refCount: refs.size }
  if ('code' in found) return { component: { ...listed, version, ...NOT_IDENTIFIED }, identity: null, why: found }
  const component = {
    ...listed,
    version: found.version,
    release: found.release,
    sourcePackage: found.source,
    allReleases: found.needsRelease,
    recordsOf: found.rebuiltBy === null ? null : found.ecosystem.base,
    binaryNameOnly: found.needsSource,
  }
  return { component, identity: found, why: null }
}

const NOT_IDENTIFIED = {
  release: null,
  sourcePackage: null,
  allReleases: false,
  recordsOf: null,
  binaryNameOnly: false,
} as const

/** Ways to write the release of a distribution, for messages; others are read as well. */
const RELEASE_EXAMPLES = [
  'debian-12',
  'bookworm',
  'ubuntu-22.04',
  'jammy',
  'alpine-3.18',
  'almalinux-9',
  'rocky-9',
  'rhel-9.4',
  'sles-15.5',
  'opensuse-leap-15.6',
  'opensuse-tumbleweed',
  'azurelinux-3',
  'openeuler-24.03',
  'photon-5.0',
  'mageia-9',
] as const

/** Returns why a text names no release of a distribution that is known here, and what is known; null: it names one. */
export function whyNoRelease(text: string): string | null {
  if (readRelease(text, null) !== null) return null
  return `names no release of a distribution that is known here: ${text.slice(0, 100)}; it takes a distribution and its release, such as ${RELEASE_EXAMPLES.join(', ')}`
}
