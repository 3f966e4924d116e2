import {
  COUNT,
  DATE,
  MAYBE_DATE,
  MAYBE_INTEGER,
  MAYBE_TEXT,
  TEXT,
  TEXTS,
  type TypeOf,
  brief,
  byName,
  described,
  object,
  oneOf,
  optional,
  typed,
} from '../schema.ts'

/*
 * Describes runs in reports. Times in ISO 8601 UTC.
 */

/** `refresh`: only the catalog lists that an event can affect, and what changed in them. */
export const RUN_KINDS = ['sync', 'refresh', 'reconcile', 'approve', 'repair', 'import'] as const
export type RunKind = (typeof RUN_KINDS)[number]

/** How a run can be. `complete` only with a full proof; `stopped` on request, before it had a result. */
export const RUN_STATES = ['running', 'complete', 'partial', 'quarantined', 'failed', 'stopped'] as const
export type RunState = (typeof RUN_STATES)[number]

const FACT = typed<number | string | boolean | null | readonly string[]>({
  type: ['number', 'string', 'boolean', 'array', 'null'],
  items: TEXT,
})

/** Counts and results of a run; any JSON. The page on run facts has all keys. */
const RUN_FACTS = byName(FACT, {
  description: 'Of private sources only numbers without a key.',
  properties: {
    quarantine: COUNT,
    doubts: described(COUNT, 'Changes that should not be believed.'),
    doubtfulIds: TEXTS,
    doubtsBelowLimits: COUNT,
    doubtsBelowLimitsIds: TEXTS,
    judgedAgainst: TEXT,
    notCompared: COUNT,
    decision: oneOf(['approved', 'rejected', 'acknowledged']),
    decidedBy: TEXT,
  },
})
export type RunFacts = TypeOf<typeof RUN_FACTS>

/** A run as the report shows it. */
export const RUN_SUMMARY = object({
  id: COUNT,
  kind: brief(oneOf(RUN_KINDS)),
  state: oneOf(RUN_STATES),
  code: MAYBE_TEXT,
  message: MAYBE_TEXT,
  facts: RUN_FACTS,
  startedAt: DATE,
  endedAt: MAYBE_DATE,
})
export type RunSummary = TypeOf<typeof RUN_SUMMARY>

/** Progress of one phase of a run; of records and items `done` counts requests that failed too. */
export const RUN_PROGRESS = object({
  phase: brief(oneOf(['index', 'archive', 'ranges', 'records', 'ingest', 'publish', 'feeds', 'lists', 'items'])),
  unit: brief(oneOf(['bytes', 'records', 'documents', 'items'])),
  done: COUNT,
  /** Null while unknown. */
  total: MAYBE_INTEGER,
  /** Why a request failed that is about to be repeated, and the time of its next attempt; not given otherwise. */
  retry: optional(object({ reason: TEXT, nextAt: DATE }, { description: 'Why a request is repeated.' })),
})
export type RunProgress = TypeOf<typeof RUN_PROGRESS>
