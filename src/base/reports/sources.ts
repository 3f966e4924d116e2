import { DOUBTS, type Doubt } from '../domain/doubts.ts'
import { SOURCES } from '../domain/sources.ts'
import {
  COUNT,
  FLAG,
  MAYBE_DATE,
  MAYBE_INTEGER,
  MAYBE_TEXT,
  PROMISED,
  TEXT,
  TEXTS,
  type TypeOf,
  brief,
  list,
  maybe,
  object,
  oneOf,
} from '../schema.ts'
import { RUN_PROGRESS, RUN_STATES, RUN_SUMMARY } from './runs.ts'

/*
 * Describes a source in the report on the mirror. Times in ISO 8601 UTC.
 */

/** State of a source: its latest run while that runs, else how its last run ended; `stopped` hides nothing that is wrong. */
const SOURCE_STATE = oneOf(['never', ...RUN_STATES])
export type SourceState = TypeOf<typeof SOURCE_STATE>

/** Lists with the reason why each may be incomplete. */
const NAMED_LISTS = list(object({ path: TEXT, reason: TEXT }))

/** The scope of the OSV source; records that are out of it are not stored, and do not count as missing. */
const OSV_SCOPE = object({ include: TEXTS, exclude: TEXTS })
export type OsvScopeStatus = TypeOf<typeof OSV_SCOPE>

/** A run whose refused change waits for a decision, and when it began; without a reason for those without a key. */
const WAITING_RUN = object({ run: COUNT, since: MAYBE_DATE, reason: MAYBE_TEXT })
export type WaitingRun = TypeOf<typeof WAITING_RUN>

/** The newest run of the last 24 hours that published what its guard doubted, until an operator acknowledges it. */
const DOUBTFUL_RUN = object({
  run: COUNT,
  snapshot: MAYBE_TEXT,
  /** When it ended. */
  at: TEXT,
  message: MAYBE_TEXT,
  /** What it hides, one sentence a kind, as `161 more findings are ruled out by VEX since the run of 2026-05-01 10:05 UTC`. */
  words: TEXTS,
  /** Empty where they are not stored. `ids`: the first twenty; none of what is private. */
  kinds: list(object({ kind: brief(oneOf(Object.keys(DOUBTS) as Doubt[])), records: COUNT, ids: TEXTS })),
})
export type DoubtfulRun = TypeOf<typeof DOUBTFUL_RUN>

/** Numbers of artifacts by what their signatures came to, and the first that are not verified. */
const SIGNATURES = object({
  verified: COUNT,
  failed: COUNT,
  none: COUNT,
  /** Whether what is not verified is not believed. */
  enforced: FLAG,
  unverified: list(object({ path: TEXT, reason: TEXT })),
})
export type SignatureStatus = TypeOf<typeof SIGNATURES>

/** One source in the report. */
export const SOURCE_STATUS = object(
  {
    name: oneOf(SOURCES),
    state: SOURCE_STATE,
    /** Snapshot id, hex; null before the first. */
    snapshot: MAYBE_TEXT,
    /** The snapshot that readers get now; null where nothing is served. */
    served: MAYBE_TEXT,
    /** Digest of the snapshot's content, hex, equal on any mirror with this content; null: none, or not computed yet. */
    contentDigest: MAYBE_TEXT,
    records: COUNT,
    /** When the contents of all OSV records were last compared with upstream's (reconcile); null: never, or another source. */
    comparedAt: MAYBE_DATE,
    /** The scope that the snapshot was made with, for OSV; null: everything that upstream lists, or another source. */
    scope: maybe(OSV_SCOPE),
    /** Upstream's date of what is served. */
    asOf: MAYBE_DATE,
    /** Null without data, and where its date is later than this machine's clock (`asOf`). */
    ageSeconds: MAYBE_INTEGER,
    /** End of the last run that checked everything and was complete; null: none yet. */
    lastSuccessAt: MAYBE_DATE,
    /** When a snapshot was last published that differs from the one before; null: none yet. */
    lastChangeAt: MAYBE_DATE,
    /** Refused documents that wait for `approve` or `reject`. */
    openQuarantines: COUNT,
    /** The runs whose refused change waits for that. */
    waiting: brief(list(WAITING_RUN)),
    /** A rejected change that upstream still offers; null: none. */
    rejected: brief(maybe(object({ run: COUNT, effect: TEXT }))),
    /** When the first of the failed runs began that are the last ones; null: the last run did not fail. */
    failingSince: MAYBE_DATE,
    /** What was published and should not be believed; null: nothing, or it is acknowledged. */
    doubtful: maybe(DOUBTFUL_RUN),
    /** Lists that are served and not known to be complete: the first twenty by path. */
    partialLists: NAMED_LISTS,
    partialListCount: COUNT,
    /** The first twenty of those whose end is not proved, though nothing speaks of more. */
    unprovedLists: NAMED_LISTS,
    /** Whether anything that upstream listed is missing, or stored in an older version. */
    partial: FLAG,
    /** How many records, paths or documents are; null: not known here, as without a snapshot. */
    missing: MAYBE_INTEGER,
    /** Why it is not synced any more, and the setting that enables it; null: it is synced, or is not meant to be. */
    unsynced: MAYBE_TEXT,
    /** Which settings of what is mirrored had other values in the last run that published, in words; null: none. */
    scopeChanged: MAYBE_TEXT,
    /** What the signatures of the stored artifacts came to; null: they are not verified, or another source. */
    signatures: brief(maybe(SIGNATURES)),
    lastRun: maybe(RUN_SUMMARY),
    /** The run that the state is of while none is under way, if it failed, was quarantined or partial: a refresh may have come after it. */
    wrongRun: brief(maybe(RUN_SUMMARY)),
    /** How far its run is, where this daemon runs it; null: no run, one of another process, or nothing is known yet. */
    progress: maybe(RUN_PROGRESS),
    nextRunAt: MAYBE_DATE,
  },
  { $id: 'SourceStatus', [PROMISED]: ['name', 'state', 'snapshot', 'asOf', 'openQuarantines', 'lastRun'] },
)
export type SourceStatus = TypeOf<typeof SOURCE_STATUS>
