import { surroundingsOf } from '../../../base/identity/surroundings.ts'
import { identityOf } from '../../match/judging/components.ts'
import type { Identity } from '../../../base/identity/identity.ts'
import type { InputSbom, SbomComponent } from '../../../documents/sboms/sbom.ts'
import { writeAsked } from './asked.ts'
import { writeDescribed } from '../../../documents/vex/described.ts'
import type { FindingComponent } from '../../../store/findings/writes.ts'

/** Package URLs of a component that are kept, far above real ones, and what is kept of more: VEX rules nothing of it out. */
const MOST_PACKAGES = 1_000
const UNKNOWN = '[[""]]'

/** A package in a version, with what SBOMs list of it. */
export type TagPackage = Omit<FindingComponent, 'id' | 'gap'>

/** What the SBOMs of a tag say. */
export interface ReadPackages {
  readonly components: readonly TagPackage[]
  /** JSON, as `TagFindings` has it. */
  readonly subjects: string
  readonly packages: number
  /** Packages of which it is not known who they are. */
  readonly unidentified: number
  /** Packages judged by the records of all releases, and by their own name only, as of `match`. */
  readonly allReleases: number
  readonly binaryNameOnly: number
}

/** Of a tag whose SBOMs cannot be read. */
export const NOTHING_READ: ReadPackages = {
  components: [],
  subjects: '[]',
  packages: 0,
  unidentified: 0,
  allReleases: 0,
  binaryNameOnly: 0,
}

/** How an SBOM lists a package. */
type Listed = readonly [purl: string | null, sbom?: number | null, source?: string, sourceVersion?: string]

/** What is stored of a component: also the source package that the SBOM names beside the package URL. */
function listedAs({ purl, source }: SbomComponent, identity: Identity, sbom: number | null): Listed {
  if (source !== null && identity.source !== null) return [purl, sbom, source.name, source.version]
  return sbom === null ? [purl] : [purl, sbom]
}

/** Returns the packages of the SBOMs of a tag: of several SBOMs together. */
export function packagesOf(sboms: readonly InputSbom[]): ReadPackages {
  const components = new Map<string, Omit<TagPackage, 'packages'>>()
  const listed = new Map<string, Set<string>>()
  const unknown = new Set<string>()
  const allReleases = new Set<string>()
  const binaryNameOnly = new Set<string>()
  for (const [at, sbom] of sboms.entries()) {
    const around = surroundingsOf({ systems: sbom.systems, option: null })
    for (const component of sbom.components) {
      const { name, version, purl } = component
      const identity = identityOf(component, around)
      if ('code' in identity) {
        unknown.add(JSON.stringify(purl === null ? [name, version] : [purl, version, '']))
        continue
      }
      const one = {
        ecosystem: identity.ecosystem.name,
        name: identity.name,
        version: identity.version,
        asked: writeAsked(identity),
      }
      const key = JSON.stringify([one.ecosystem, one.name, one.version, one.asked])
      components.set(key, one)
      if (identity.needsRelease) allReleases.add(key)
      if (identity.needsSource) binaryNameOnly.add(key)
      const place = listedAs(component, identity, sboms.length === 1 ? null : at)
      listed.set(key, (listed.get(key) ?? new Set()).add(JSON.stringify(place)))
    }
  }
  const withPackages = [...components].map(([key, one]) => {
    const packages = [...(listed.get(key) ?? [])].sort()
    return {
      ...one,
      packages: packages.length > MOST_PACKAGES ? UNKNOWN : `[${packages.join(',')}]`,
    }
  })
  const subjects = JSON.stringify(sboms.map(writeDescribed))
  return {
    components: withPackages,
    subjects,
    packages: components.size + unknown.size,
    unidentified: unknown.size,
    allReleases: allReleases.size,
    binaryNameOnly: binaryNameOnly.size,
  }
}
