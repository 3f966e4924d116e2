import { MirrorError } from '../../../../base/errors.ts'

/** Why a follower does not take a generation; it goes on with what it serves. */
export type GenerationRefusal =
  /** No trusted key signed it, or its content was changed after signing. */
  | 'untrusted'
  /** It is not a generation that this program reads. */
  | 'malformed'
  /** A generation between this one and the next stored one does not exist. */
  | 'hole'
  /** The generation before it has another content than the one that was followed. */
  | 'fork'
  /** The store has fewer generations than were followed, and none that is newer. */
  | 'backwards'
  /** It was published under an older lease than the generation before it. */
  | 'epoch'
  | 'expired'
  /** It is dated in the future; `ahead`: also by the clock of the store, which agrees with the one here, so the next one ends it. */
  | 'future'
  | 'ahead'
  /** It belongs to another fleet. */
  | 'fleet'
  /** An object that it names does not exist, or has other bytes. */
  | 'missing'
  | 'damaged'
  /** It has a thin bundle that does not become the whole one here, as where zlib is another. This mirror then asks for whole ones. */
  | 'thin'
  /** This data folder has a source that the generation does not have. */
  | 'sources'

/** Reports whether the next generation of a leader ends a refusal: only the date of what is refused is wrong. */
export function isEndedByNext(why: string | null): boolean {
  return why === 'expired' || why === 'ahead'
}

const REASONS = new WeakMap<Error, GenerationRefusal>()

/** Creates a `fleet` error whose reason `whyGenerationRefused` returns. */
export function refuseGeneration(why: GenerationRefusal, message: string, options?: { cause?: unknown }): MirrorError {
  const error = new MirrorError('fleet', message, options)
  REASONS.set(error, why)
  return error
}

/** Returns why a generation is refused; null for other errors, as when the store cannot be reached. */
export function whyGenerationRefused(error: unknown): GenerationRefusal | null {
  return error instanceof Error ? (REASONS.get(error) ?? null) : null
}
