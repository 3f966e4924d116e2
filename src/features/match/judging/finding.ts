import type { VexReason } from '../../../documents/vex/apply.ts'
import type { Identity } from '../../../base/identity/identity.ts'
import type { Severity } from '../../../documents/records/severity.ts'

/** A package of the SBOM: equal components are one, with all their references. */
export interface MatchedComponent {
  readonly name: string
  /** That of the purl, else of the SBOM. */
  readonly version: string
  readonly purl: string | null
  /** `bom-ref`s or SPDX identifiers in the SBOM, the first 100. */
  readonly refs: readonly string[]
  /** How many different ones the SBOM has. */
  readonly refCount: number
  /** The release by whose records it was judged, and what names it; null: none is known, or its ecosystem has none. */
  readonly release: Identity['release']
  /** The package of a distribution that it is built from; null: it is none, or its source is not known. */
  readonly sourcePackage: Identity['source']
  /** Whether it was judged by the records of all releases, since its own is not known. */
  readonly allReleases: boolean
  /** The distribution by whose records, and VEX, it was judged, where its own rebuilds the packages of that; null: by its own. */
  readonly recordsOf: string | null
  /** Whether it was judged by its own name only, though records name source packages: its own is not known. */
  readonly binaryNameOnly: boolean
}

/** A vulnerability of a component. */
export interface MatchFinding {
  /** Id of the record. */
  readonly id: string
  readonly aliases: readonly string[]
  /** Vulnerabilities that the record is derived from. */
  readonly upstream: readonly string[]
  readonly summary: string
  readonly modified: string | null
  readonly severity: Severity
  readonly component: MatchedComponent
  /** The source package by whose name it was found; null: by the component's own name. */
  readonly source: string | null
  /** As the record writes them. */
  readonly ecosystems: readonly string[]
  /** Fixed versions above the component's; empty: the record names none. */
  readonly fixed: readonly string[]
  /** What the service's list of patches says about it: the first 100 entries, before others those that are done. */
  readonly patches: readonly MatchPatch[]
  /** How many entries of the list are about it. */
  readonly patchCount: number
}

/** An entry of the service's list of patches about the CVE and the package of a finding. */
export interface MatchPatch {
  /** Its identifier in the list. */
  readonly ticket: string
  readonly cve: string
  /** As the service writes it, such as `done`; empty: it has none, as with the others. */
  readonly status: string
  readonly version: string
  /** Release of the distribution that it is for, such as `12`. */
  readonly release: string
}

/** The mirrored list of patches that findings were joined with. */
export interface MatchPatches {
  /** Why they were not; null: they were. */
  readonly notApplied: string | null
  /** Entries of the list. */
  readonly entries: number
  /** Why the list may be incomplete or outdated; null: it is neither, or not used. */
  readonly partial: string | null
}

/** A finding that VEX rules out. */
export interface SuppressedFinding extends MatchFinding {
  readonly vex: VexReason
}

/** A component that was not judged, or not completely, and why. */
export interface NotJudged extends MatchedComponent {
  readonly code: NotJudgedCode
  readonly reason: string
}

/** Why a component was not judged, or not completely. */
type NotJudgedCode =
  | 'no_purl'
  | 'bad_purl'
  | 'unknown_ecosystem'
  | 'no_version'
  /** The mirror has no records of its ecosystem, or of its release. */
  | 'no_records'
  /** Records about its package exist, and none could be compared with its version. */
  | 'not_compared'
  /** It is a file, a system or what the SBOM describes: records are about packages. */
  | 'no_package'
  /** Judged in part: by the records that list exactly its version. */
  | 'version_not_ordered'
  /** Judged in part: some records about its package could not be compared with its version. */
  | 'partly_compared'
  /** Judged in part: it may also be another package than the one that was looked for. */
  | 'ambiguous'

/** Codes of components that were judged in part. */
const PARTLY: ReadonlySet<NotJudgedCode> = new Set(['version_not_ordered', 'partly_compared', 'ambiguous'])

/** Reports whether records were looked up for a component that is listed as not judged: it was not judged completely. */
export function isPartlyJudged({ code }: Pick<NotJudged, 'code'>): boolean {
  return PARTLY.has(code)
}

/** Reports whether a component is a package, of which nothing or not everything is known. */
export function isUnjudged({ code }: Pick<NotJudged, 'code'>): boolean {
  return code !== 'no_package'
}
