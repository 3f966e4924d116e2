import type { VexReason } from '../vex/apply.ts'
import type { Severity } from './severity.ts'

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
  readonly code: 'no_purl' | 'bad_purl' | 'unknown_ecosystem' | 'no_records' | 'no_version' | 'version_not_ordered' // prettier-ignore
  readonly reason: string
}
