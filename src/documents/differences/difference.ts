import type { AffectedRange, PackageName } from './facts.ts'

/** One difference by meaning between two versions of a record. `from` and `to` are null where there is no value. */
export type RecordDifference =
  | { readonly kind: 'record_added' | 'record_removed' }
  | ({ readonly kind: 'withdrawn' | 'no_longer_withdrawn' | 'withdrawal_changed' } & FromTo)
  | ({ readonly kind: 'package_added' | 'package_removed' } & OfPackage)
  | FixDifference
  | RangeDifference
  | ({ readonly kind: 'versions_added' | 'versions_removed'; readonly versions: readonly string[] } & OfPackage)
  | SeverityDifference
  | { readonly kind: 'aliases_added' | 'aliases_removed'; readonly aliases: readonly string[] }
  | { readonly kind: 'other_changed'; readonly fields: readonly string[] }
  | ({ readonly kind: 'modified_only' } & FromTo)

interface FromTo {
  readonly from: string | null
  readonly to: string | null
}

interface OfPackage {
  readonly package: PackageName
}

/** A change of a version (or commit) that fixes a package; `fix_changed` where the two cannot be ordered. */
export type FixDifference = {
  readonly kind: 'fix_added' | 'fix_removed' | 'fix_lowered' | 'fix_raised' | 'fix_changed'
} & FromTo &
  OfPackage

/** A change of the ranges of a package; `range_rewritten`: they affect the same versions. */
export type RangeDifference = {
  readonly kind:
    'range_added' | 'range_removed' | 'range_widened' | 'range_narrowed' | 'range_rewritten' | 'range_changed'
  readonly added: readonly AffectedRange[]
  readonly removed: readonly AffectedRange[]
} & OfPackage

/** A change of a severity: of the whole record, or of one package. `scale`: `CVSS_V3` and so on, or the field of its word. */
type SeverityDifference = {
  readonly kind: 'severity_changed'
  readonly package: PackageName | null
  readonly scale: string
} & FromTo
