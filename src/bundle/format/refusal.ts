import { MirrorError } from '../../core/errors.ts'

/**
 * Why a bundle does not go with what is held: it builds on a state that is not here, or it is older than what is; or why it
 * cannot be judged yet: something of it is still missing.
 */
export type RefusalReason =
  /** `sequence`: the bundle that is missing; null: a state that only the need file knew. */
  | { kind: 'base'; sequence: number | null }
  | { kind: 'older' }
  /** The source mirror was restored from a backup and gives numbers again: its order cannot be trusted. */
  | { kind: 'restored' }
  | { kind: 'incomplete' }

const TOLD = new WeakMap<Error, RefusalReason>()

/** A `bundle` error that can be told from others by `refusalOf`. */
export function bundleRefusal(why: RefusalReason, message: string): MirrorError {
  const error = new MirrorError('bundle', message)
  TOLD.set(error, why)
  return error
}

/** Why a sound bundle is refused; null when that is not what an error says. */
export function refusalOf(error: unknown): RefusalReason | null {
  return error instanceof Error ? (TOLD.get(error) ?? null) : null
}
