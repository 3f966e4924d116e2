import { COUNT, DATE, FLAG, MAYBE_DATE, MAYBE_TEXT, TEXT, type TypeOf, list, maybe, object, oneOf } from '../schema.ts'

/*
 * Describes what a mirror passes on and takes in, beside its sources: the relay, shared caches, bundles. Times in ISO 8601 UTC.
 */

/** A target of the relay. */
export const RELAY_TARGET = object({
  id: COUNT,
  /** As `relay.targets` names it, for everybody; null: it has no name there. */
  name: MAYBE_TEXT,
  /** Scheme and host alone: the rest of a URL may be a token. Null for those without a key. */
  target: MAYBE_TEXT,
  /** `paused`: `relay.targets` does not have it, or another mirror leads; what waits is kept. */
  state: oneOf(['ok', 'failing', 'disabled', 'paused']),
  /** Of the last failure, which may be long over; null for those without a key. */
  reason: MAYBE_TEXT,
  pending: COUNT,
  /** Events that it never got: too old, or it was disabled. */
  givenUp: COUNT,
  /** Since when it fails, is disabled or paused. */
  since: MAYBE_DATE,
  failedAt: MAYBE_DATE,
  deliveredAt: MAYBE_DATE,
})
export type RelayStatus = TypeOf<typeof RELAY_TARGET>

/** A shared cache to purge (`edge.purge`). Counts are since the start. */
export const EDGE_TARGET = object({
  /** Its place in the settings, from 1: a URL may contain a token. */
  id: COUNT,
  /** `failing`: the last purge failed and is retried. */
  state: oneOf(['ok', 'failing']),
  /** Whether a purge is under way or waits. */
  pending: FLAG,
  purgedAt: MAYBE_DATE,
  /** Of the last failure; null if it succeeded. */
  reason: MAYBE_TEXT,
  purged: COUNT,
  failures: COUNT,
})
export type EdgeTargetStatus = TypeOf<typeof EDGE_TARGET>

/** The images of the catalog in the registry of `images.registry`, without its address, which is private. */
export const IN_REGISTRY = object({
  images: COUNT,
  there: COUNT,
  /** The registry said that it has none of this digest. */
  missing: COUNT,
  /** Neither is known, or not yet. */
  unknown: COUNT,
  checking: FLAG,
  /** When a check last ended that asked for each of them, with an answer to each request, of whatever status; null: none yet. */
  checkedAt: MAYBE_DATE,
  /** Why there may be more images than these: the catalog's list of tags is not known to be complete; null: it is. */
  incomplete: MAYBE_TEXT,
  /** Error code for an image that is not known; null: none failed. */
  problem: MAYBE_TEXT,
})
export type RegistryStatus = TypeOf<typeof IN_REGISTRY>

/** `delta`: only what changed since an earlier bundle. */
const BUNDLE_KIND = oneOf(['full', 'delta'])

/** A bundle that was imported, without the name of its file, which is private. */
export const BUNDLE = object({
  /** Identity of the mirror that made it, and its number there. */
  mirror: TEXT,
  sequence: COUNT,
  kind: BUNDLE_KIND,
  /** The trusted key that signed it; null: unsigned, and that was allowed. */
  key: MAYBE_TEXT,
  /** It was older than the stored state. */
  rollback: FLAG,
  /** Upstream's date of the oldest that it brought. */
  asOf: DATE,
  createdAt: DATE,
  importedAt: DATE,
})
export type BundleStatus = TypeOf<typeof BUNDLE>

/** State of the outbox. */
const OUTBOX = object({
  /** The last bundle written since the start; null: none yet. */
  last: maybe(
    object({
      sequence: COUNT,
      kind: BUNDLE_KIND,
      file: TEXT,
      bytes: COUNT,
      at: DATE,
      /** What receipts made of it, `thin: …` or `whole: …` with the reason; null: there were none, or it is a full bundle. */
      receipts: MAYBE_TEXT,
    }),
  ),
  exporting: FLAG,
  /** Error code of the last export; null if it succeeded. */
  problem: MAYBE_TEXT,
  /** Its message. */
  reason: MAYBE_TEXT,
})

/** State of the inbox for bundles. Counts are since the start. */
const INBOX = object({
  waiting: list(object({ file: TEXT, why: TEXT })),
  imported: COUNT,
  superseded: COUNT,
  refused: COUNT,
  /** Where its first file is in the folder; null as well when that was removed. */
  lastRefused: maybe(object({ file: TEXT, at: DATE, why: TEXT })),
  /** The error code if the folder, or the tag of a registry, cannot be read; null otherwise. */
  problem: MAYBE_TEXT,
})
export type InboxStatus = TypeOf<typeof INBOX>

/** State of both folders; null for one that is not configured. */
export const BOXES = object({ outbox: maybe(OUTBOX), inbox: maybe(INBOX) })
export type BoxesStatus = TypeOf<typeof BOXES>
