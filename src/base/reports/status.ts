import {
  MAYBE_INTEGER,
  MAYBE_TEXT,
  PROMISED,
  TEXT,
  type TypeOf,
  brief,
  described,
  list,
  maybe,
  object,
  optional,
} from '../schema.ts'
import { FLEET } from './fleet.ts'
import { REPORTED_PROBLEM } from './problems.ts'
import { TAG_FINDINGS, VIEWS } from './scanners.ts'
import { SOURCE_STATUS } from './sources.ts'
import { SECRET_FAULT, STORAGE, VERIFIED } from './storage.ts'
import { BOXES, BUNDLE, EDGE_TARGET, IN_REGISTRY, RELAY_TARGET } from './transfer.ts'
import { WEBHOOKS } from './webhooks.ts'

/** The report on the whole mirror, as `/-/status` answers it. Nothing in it is secret or contains the name of a folder. */
export const STATUS = object(
  {
    version: TEXT,
    /** Id of the running daemon, another one after each start; null when the report does not come from one. */
    instance: MAYBE_TEXT,
    /** Null when the report does not come from a running server. */
    uptimeSeconds: MAYBE_INTEGER,
    sources: list(SOURCE_STATUS),
    /** The content digests of all sources with a snapshot in one; null while one of them is null. */
    contentDigest: MAYBE_TEXT,
    /** Whether the data folder can be written to. */
    storage: brief(STORAGE),
    /** Targets of the relay; empty when nothing is passed on. */
    relay: brief(list(RELAY_TARGET)),
    /** The bundle that was imported last; null: none ever was. */
    bundle: brief(maybe(BUNDLE)),
    /** The last verification of all that is stored; null: none is known. */
    verified: optional(brief(maybe(VERIFIED))),
    /** Files of secret settings that cannot be used any more. */
    secretFaults: optional(brief(list(SECRET_FAULT))),
    /** State of webhooks, where a daemon receives them. */
    webhooks: optional(brief(WEBHOOKS)),
    /** What scanners read, where a daemon makes it. */
    views: optional(brief(list(VIEWS))),
    /** How far the SBOMs of the mirrored tags are judged, where a daemon does it. */
    findings: optional(brief(TAG_FINDINGS)),
    /** Outbox and inbox, where a daemon has any. */
    boxes: optional(brief(BOXES)),
    /** Shared caches to purge, where the settings name any. */
    edge: optional(brief(list(EDGE_TARGET))),
    /** Which images the registry of the settings has, where they name one. */
    registry: optional(brief(IN_REGISTRY)),
    /** Its part in a fleet, where it has one. */
    fleet: optional(brief(FLEET)),
    /** Everything that is wrong, the most severe first. */
    problems: brief(described(list(REPORTED_PROBLEM), 'One for each cause.')),
  },
  {
    description: 'State of sources, storage, relay, bundles, webhooks and views.',
    [PROMISED]: ['version', 'instance', 'uptimeSeconds', 'sources', 'storage', 'relay', 'bundle'],
  },
)
export type StatusAnswer = TypeOf<typeof STATUS>

/** The report without the judgement of what is wrong with it. */
export type Status = Omit<StatusAnswer, 'problems'>
