import type { RecordDifference } from '../../documents/differences/difference.ts'
import { SOURCES } from '../../base/domain/sources.ts'

const TEXT = { type: 'string' }
const MAYBE_TEXT = { type: ['string', 'null'] }
const DATE = { type: 'string', format: 'date-time' }
const MAYBE_DATE = { type: ['string', 'null'], format: 'date-time' }
const MAYBE_NUMBER = { type: ['integer', 'null'] }
const COUNT = { type: 'integer', minimum: 0 }
const TEXTS = { type: 'array', items: TEXT }

/** Creates the schema of an object. `required`: all of them when not given. */
export const object = (
  description: string,
  properties: object,
  required: readonly string[] = Object.keys(properties),
) => ({ type: 'object', ...(description !== '' && { description }), required, properties })

const LISTS = { type: 'array', items: object('', { path: TEXT, reason: TEXT }) }

/** Why the guard doubted a change that was published. */
export const RECORD_DOUBTS = {
  type: 'array',
  items: object('', { kind: TEXT, snapshot: TEXT, run: COUNT }),
}

/** What a run notes beside its message. */
const FACTS = {
  type: 'object',
  description: 'Of private sources only numbers without a key.',
  properties: {
    quarantine: COUNT,
    doubts: { ...COUNT, description: 'Changes that should not be believed.' },
    doubtfulIds: TEXTS,
    doubtsBelowLimits: COUNT,
    doubtsBelowLimitsIds: TEXTS,
    judgedAgainst: TEXT,
    notCompared: COUNT,
    decision: { enum: ['approved', 'rejected', 'acknowledged'] },
    decidedBy: TEXT,
  },
  additionalProperties: { type: ['number', 'string', 'boolean', 'array', 'null'], items: TEXT },
}

const RUN = {
  ...object('', {
    id: COUNT,
    kind: TEXT,
    state: { enum: ['running', 'complete', 'partial', 'quarantined', 'failed', 'stopped'] },
    code: MAYBE_TEXT,
    message: MAYBE_TEXT,
    facts: FACTS,
    startedAt: { type: 'string', format: 'date-time' },
    endedAt: MAYBE_DATE,
  }),
  type: ['object', 'null'],
}

/** A source in the report on the mirror. */
export const SOURCE_STATUS = object(
  '',
  {
    name: { enum: [...SOURCES] },
    state: {
      enum: ['never', 'running', 'complete', 'partial', 'quarantined', 'failed', 'stopped'],
    },
    snapshot: MAYBE_TEXT,
    served: MAYBE_TEXT,
    contentDigest: MAYBE_TEXT,
    records: COUNT,
    comparedAt: MAYBE_DATE,
    scope: {
      ...object('', {
        include: TEXTS,
        exclude: TEXTS,
      }),
      type: ['object', 'null'],
    },
    asOf: MAYBE_DATE,
    ageSeconds: MAYBE_NUMBER,
    lastSuccessAt: MAYBE_DATE,
    lastChangeAt: MAYBE_DATE,
    openQuarantines: COUNT,
    waiting: { type: 'array' },
    rejected: { type: ['object', 'null'] },
    failingSince: MAYBE_DATE,
    doubtful: {
      ...object('', {
        run: COUNT,
        snapshot: MAYBE_TEXT,
        at: TEXT,
        message: MAYBE_TEXT,
        words: TEXTS,
        kinds: { type: 'array', items: object('', { kind: TEXT, records: COUNT, ids: TEXTS }) },
      }),
      type: ['object', 'null'],
    },
    partialLists: LISTS,
    partialListCount: COUNT,
    unprovedLists: LISTS,
    partial: { type: 'boolean' },
    missing: MAYBE_NUMBER,
    unsynced: MAYBE_TEXT,
    scopeChanged: MAYBE_TEXT,
    signatures: { type: ['object', 'null'] },
    lastRun: RUN,
    progress: {
      ...object(
        '',
        {
          phase: TEXT,
          unit: TEXT,
          done: COUNT,
          total: MAYBE_NUMBER,
          retry: object('Why a request is repeated.', { reason: TEXT, nextAt: DATE }),
        },
        ['phase', 'unit', 'done', 'total'],
      ),
      type: ['object', 'null'],
    },
    nextRunAt: MAYBE_DATE,
  },
  ['name', 'state', 'snapshot', 'asOf', 'openQuarantines', 'lastRun'],
)

const RANGES = {
  type: 'array',
  items: object(
    '',
    {
      type: TEXT,
      repo: MAYBE_TEXT,
      events: { type: 'array', items: { type: 'object', additionalProperties: TEXT } },
      isUnreadable: { const: true, description: 'Present where a bound is no text.' },
    },
    ['type', 'repo', 'events'],
  ),
}

/** Kinds of differences: each may have the members that its package, its ranges or its values need. */
const KINDS = [
  ...['record_added', 'record_removed', 'withdrawn', 'no_longer_withdrawn', 'withdrawal_changed'],
  ...['package_added', 'package_removed'],
  ...['fix_added', 'fix_removed', 'fix_lowered', 'fix_raised', 'fix_changed'],
  ...['range_added', 'range_removed', 'range_widened', 'range_narrowed', 'range_rewritten', 'range_changed'],
  ...['versions_added', 'versions_removed', 'severity_changed', 'aliases_added', 'aliases_removed'],
  ...['other_changed', 'modified_only'],
] as const satisfies readonly RecordDifference['kind'][]

/** What changed in a record between two versions. */
export const RECORD_DIFFERENCE = object(
  '',
  {
    kind: { enum: KINDS },
    package: {
      ...object('', { ecosystem: TEXT, name: TEXT }),
      type: ['object', 'null'],
    },
    from: MAYBE_TEXT,
    to: MAYBE_TEXT,
    added: RANGES,
    removed: RANGES,
    scale: TEXT,
    versions: TEXTS,
    aliases: TEXTS,
    fields: TEXTS,
  },
  ['kind'],
)
