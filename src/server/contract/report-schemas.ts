import type { RecordDifference } from '../../documents/differences/difference.ts'

const TEXT = { type: 'string' }
const MAYBE_TEXT = { type: ['string', 'null'] }
const COUNT = { type: 'integer', minimum: 0 }
const TEXTS = { type: 'array', items: TEXT }

/** Creates the schema of an object. `required`: all of them when not given. */
export const object = (
  description: string,
  properties: object,
  required: readonly string[] = Object.keys(properties),
) => ({ type: 'object', ...(description !== '' && { description }), required, properties })

/** Why the guard doubted a change that was published. */
export const RECORD_DOUBTS = {
  type: 'array',
  items: object('', { kind: TEXT, snapshot: TEXT, run: COUNT }),
}

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
