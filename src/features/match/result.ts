import type { MatchFinding, MatchPatches, NotJudged, SuppressedFinding } from './judging/finding.ts'
import type { MissingParts } from '../../server/snapshot/missing.ts'
import type { Level } from '../../documents/records/severity.ts'

/** The mirrored VEX that findings were compared with. */
export interface MatchVex {
  /** Why none was; null: it was. */
  readonly notApplied: string | null
  /** The snapshot of the catalog; null where VEX was not applied. */
  readonly snapshot: string | null
  /** Upstream's oldest date of a VEX document in it, ISO 8601 UTC; null where VEX was not applied. */
  readonly asOf: string | null
  /** The setting that its age exceeds; null: none, or the settings serve it unmarked. */
  readonly stale: string | null
  readonly documents: number
  /** Documents that were not read: damaged, too large, or of a format that is not read. */
  readonly unread: number
  /** Documents that are missing or outdated, since the last run could not fetch them. */
  readonly missing: number
}

/** The snapshot that an SBOM was judged by. */
export interface MatchSnapshot extends MissingParts {
  readonly id: string
  /** ISO 8601 UTC; null: a newer snapshot is published already, and its index is being built. */
  readonly publishedAt: string | null
  /** Upstream's date, ISO 8601 UTC. */
  readonly asOf: string
  /** Null: its date is later than this machine's clock. */
  readonly ageSeconds: number | null
  /** The setting that its age exceeds; null: none, or the settings serve it unmarked. */
  readonly stale: string | null
  /** Newer states of upstream that wait for a decision (`patchmirror approve`, `reject`). */
  readonly quarantined: number
  /** Why a newer state of upstream is not published: it waits for a decision, or was rejected; null: nothing of that is known. */
  readonly withheld: string | null
  /** The scope of the mirror in words; null: it has all records of upstream. */
  readonly scope: string | null
}

/** What this mirror does not know, so that findings may be missing or wrong. */
export interface MatchGap {
  /**
   * `components`: no component was judged, or compared with any record. `sbom`, `age` and `records` are about all findings, `vex` about what it rules out, `patches` about what is
   * fixable, `release` about what is found too much.
   */
  readonly code: 'components' | 'sbom' | 'age' | 'records' | 'vex' | 'patches' | 'release'
  readonly reason: string
}

/** What was found in an SBOM. */
export interface MatchResult {
  readonly sbom: { readonly format: string; readonly name: string; readonly enveloped: boolean }
  readonly snapshot: MatchSnapshot
  readonly counts: MatchCounts
  /** The worst first. */
  readonly findings: readonly MatchFinding[]
  /** Those that VEX rules out; they are not among `findings`. */
  readonly suppressed: readonly SuppressedFinding[]
  readonly vex: MatchVex
  readonly patches: MatchPatches
  readonly notJudged: readonly NotJudged[]
  /** Package URLs of those that were looked up, and that no record here is about, in whatever version. */
  readonly withoutRecords: readonly string[]
  readonly gaps: readonly MatchGap[]
}

interface MatchCounts {
  /** As the SBOM lists them. */
  readonly components: number
  /** Different packages among them; equal components are one. */
  readonly packages: number
  readonly vulnerable: number
  readonly findings: number
  /** Findings with a fixed version, or a patch that is done. */
  readonly fixable: number
  /** Findings that VEX rules out. */
  readonly suppressed: number
  readonly notJudged: number
  /** Packages judged by the records of all releases of their distribution: their own is not known. */
  readonly allReleases: number
  /** Packages judged by their own name only, though records name source packages: their own is not known. */
  readonly binaryNameOnly: number
  /** Packages of CentOS, judged by the records of Red Hat and VEX about its packages. */
  readonly rebuilt: number
  readonly levels: Readonly<Record<Level | 'unknown', number>>
}
