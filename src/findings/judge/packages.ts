import { askAbout } from '../../judging/judge.ts'
import type { InputSbom } from '../../sboms/sbom.ts'
import type { FindingComponent } from '../../store/findings/writes.ts'

/** Package URLs of a component that are kept, far above real ones, and what is kept of more: VEX rules nothing of it out. */
const MOST_PACKAGES = 1_000
const UNKNOWN = '[[""]]'

/** A package in a version, with what SBOMs list of it. */
export type TagPackage = Omit<FindingComponent, 'id'>

/** What the SBOMs of a tag say. */
export interface ReadPackages {
  readonly components: readonly TagPackage[]
  /** JSON, as `TagFindings` has it. */
  readonly subjects: string
  readonly packages: number
  readonly notJudged: number
}

/** Of a tag whose SBOMs cannot be read. */
export const NOTHING_READ: ReadPackages = {
  components: [],
  subjects: '[]',
  packages: 0,
  notJudged: 0,
}

/** Returns the packages of the SBOMs of a tag: of several SBOMs together. */
export function packagesOf(sboms: readonly InputSbom[]): ReadPackages {
  const components = new Map<string, Omit<TagPackage, 'packages'>>()
  const listed = new Map<string, Set<string>>()
  const unknown = new Set<string>()
  for (const [at, sbom] of sboms.entries())
    for (const { name, version, purl } of sbom.components) {
      const query = askAbout({ purl, version })
      if ('code' in query) {
        unknown.add(JSON.stringify(purl === null ? [name, version] : [purl, version, '']))
        continue
      }
      const one = { ecosystem: query.ecosystem.name, name: query.name, version: query.version }
      const key = JSON.stringify([one.ecosystem, one.name, one.version])
      components.set(key, one)
      const place = sboms.length === 1 ? [purl] : [purl, at]
      listed.set(key, (listed.get(key) ?? new Set()).add(JSON.stringify(place)))
    }
  const withPackages = [...components].map(([key, one]) => {
    const packages = [...(listed.get(key) ?? [])].sort()
    return {
      ...one,
      packages: packages.length > MOST_PACKAGES ? UNKNOWN : `[${packages.join(',')}]`,
    }
  })
  const subjects = JSON.stringify(sboms.map((sbom) => sbom.subjects))
  const packages = components.size + unknown.size
  return { components: withPackages, subjects, packages, notJudged: unknown.size }
}
