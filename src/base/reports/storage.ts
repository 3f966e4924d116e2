import {
  COUNT,
  DATE,
  FLAG,
  MAYBE_INTEGER,
  MAYBE_TEXT,
  TEXT,
  TEXTS,
  type TypeOf,
  object,
  oneOf,
  optional,
} from '../schema.ts'

/**
 * Whether the data folder can be used: `full` when the disk is full, `damaged` when what is stored cannot be read, `failing`
 * when the disk or the folder cannot be used for any other reason.
 */
export const STORAGE_MEMBERS = {
  state: oneOf(['ok', 'full', 'failing', 'damaged']),
  /** Why it is not `ok`, without the folder's name. */
  reason: MAYBE_TEXT,
  /** Free bytes for this user; null when the system does not report them. */
  freeBytes: MAYBE_INTEGER,
  /** When it began, ISO 8601 UTC, where a daemon watches it. */
  since: optional(DATE),
}
/** State of the data folder. */
export const STORAGE = object(STORAGE_MEMBERS)
export type StorageState = TypeOf<typeof STORAGE>

/** A file of a secret setting that cannot be used. */
export const SECRET_FAULT = object({
  /** Of the setting, or the name of the file in the data folder. */
  key: TEXT,
  /** What is wrong, as the rest of a sentence; it quotes no value. */
  fault: TEXT,
  /** Whether the value that was read before stays in force; where that is not given, it does in a daemon. */
  kept: optional(FLAG),
})

/** The last verification of all that is stored. */
export const VERIFIED = object({
  /** ISO 8601 UTC. */
  endedAt: DATE,
  /** What was damaged, in words; the first twenty. */
  damaged: TEXTS,
  /** How many parts were damaged. */
  damagedCount: COUNT,
  /** What was damaged before and is sound now, in words; null: nothing was. */
  healed: MAYBE_TEXT,
})
export type VerifiedStatus = TypeOf<typeof VERIFIED>
