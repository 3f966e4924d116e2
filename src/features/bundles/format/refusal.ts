import { MirrorError } from '../../../base/errors.ts'

/**
 * Why a bundle cannot be applied to the stored data: its base state is not stored, or it is older; or why it cannot be
 * decided yet: a part is missing, or the clock contradicts its dates.
 */
export type RefusalReason =
  /** `sequence`: the missing bundle; null: a state known from the need file only. */
  | { kind: 'base'; sequence: number | null }
  | { kind: 'older' }
  /** The source mirror reused sequence numbers, as after a restored backup: its ordering cannot be trusted. */
  | { kind: 'restored' }
  | { kind: 'incomplete' }
  /** The clock here is not within these times, Unix milliseconds: it may be wrong, and the bundle right. */
  | { kind: 'clock'; from: number; until: number }

const REASONS = new WeakMap<Error, RefusalReason>()

/** Creates a `bundle` error whose reason `refusalOf` returns. */
export function bundleRefusal(why: RefusalReason, message: string): MirrorError {
  const error = new MirrorError('bundle', message)
  REASONS.set(error, why)
  return error
}

/** Returns why a valid bundle is refused; null for other errors. */
export function refusalOf(error: unknown): RefusalReason | null {
  return error instanceof Error ? (REASONS.get(error) ?? null) : null
}
