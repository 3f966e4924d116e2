import { DOUBTS, type Doubt } from '../../base/domain/doubts.ts'
import { SOURCES } from '../../base/domain/sources.ts'
import {
  COUNT,
  FLAG,
  INTEGER,
  MAYBE_INTEGER,
  MAYBE_TEXT,
  TEXT,
  TEXTS,
  type TypeOf,
  brief,
  described,
  list,
  maybe,
  object,
  oneOf,
  optional,
  typed,
} from '../../base/schema.ts'
import { LEFT_CAUSES } from '../../store/changes/left.ts'
import type { RecordDifference } from '../../documents/differences/difference.ts'

const RANGES = list(
  object({
    type: TEXT,
    repo: MAYBE_TEXT,
    events: typed<readonly object[]>({ type: 'array', items: { type: 'object', additionalProperties: TEXT } }),
    isUnreadable: optional(typed<true>({ const: true, description: 'Present where a bound is no text.' })),
  }),
)

/** Kinds of differences: each may have the members that its package, its ranges or its values need. */
const KINDS = [
  ...['record_added', 'record_removed', 'withdrawn', 'no_longer_withdrawn', 'withdrawal_changed'],
  ...['package_added', 'package_removed'],
  ...['fix_added', 'fix_removed', 'fix_lowered', 'fix_raised', 'fix_changed'],
  ...['range_added', 'range_removed', 'range_widened', 'range_narrowed', 'range_rewritten', 'range_changed'],
  ...['versions_added', 'versions_removed', 'severity_changed', 'aliases_added', 'aliases_removed'],
  ...['other_changed', 'modified_only'],
] as const satisfies readonly RecordDifference['kind'][]

/** What changed in a record between two versions. Its type says which kind has which members. */
export const RECORD_DIFFERENCE = typed<RecordDifference>(
  object(
    {
      kind: oneOf(KINDS),
      package: optional(maybe(object({ ecosystem: TEXT, name: TEXT }))),
      from: optional(MAYBE_TEXT),
      to: optional(MAYBE_TEXT),
      added: optional(RANGES),
      removed: optional(RANGES),
      scale: optional(TEXT),
      versions: optional(TEXTS),
      aliases: optional(TEXTS),
      fields: optional(TEXTS),
    },
    { $id: 'RecordDifference' },
  ),
)

/** Why the guard doubted a change that was published. */
const DOUBT = object({
  kind: brief(oneOf(Object.keys(DOUBTS) as Doubt[])),
  snapshot: TEXT,
  run: COUNT,
  approved: optional(typed<true>({ const: true, description: 'Present where an operator approved it.' })),
})

/** A record by its id, anything else by its path. */
const CHANGED = object(
  {
    source: brief(oneOf(SOURCES)),
    id: optional(TEXT),
    path: optional(TEXT),
    change: oneOf(['added', 'changed', 'removed']),
    snapshot: TEXT,
    /** When that was published here. */
    at: TEXT,
    /** Why a removed record left this mirror that is not known to be removed upstream; missing: it is. */
    cause: optional(described(oneOf(LEFT_CAUSES), 'Of a removed record that is not known to be removed upstream.')),
    differences: optional(described(maybe(list(RECORD_DIFFERENCE)), 'By `kind`; null: not known, as `words` say.')),
    words: optional(TEXTS),
    /** Why this mirror's guard doubted the change that it published; missing: it did not. */
    doubts: optional(list(DOUBT)),
  },
  { description: 'A record by its id, anything else by its path.' },
)

type Named = { readonly id: string } | { readonly path: string }
const CHANGE = typed<Omit<TypeOf<typeof CHANGED>, 'id' | 'path'> & Named>(CHANGED)

/** What changed between two snapshots, folded, so that each name is listed once: `/-/changes`. */
export const CHANGES_ANSWER = object(
  {
    source: brief(oneOf(SOURCES)),
    /** Ids of both snapshots. */
    from: TEXT,
    to: TEXT,
    complete: described(FLAG, 'False: everything may have changed.'),
    changes: list(CHANGE),
    next: described(MAYBE_TEXT, 'For `after`; null on the last page.'),
    since: optional(described(TEXT, 'The time that `since` named, in UTC.')),
    knownSince: optional(MAYBE_TEXT),
    /** A time from which the names would be listed, where none are because too much changed; missing: none is known. */
    namedSince: optional(TEXT),
    /** How many names were added, changed and removed in the snapshots that say so, where none is listed; missing: all are. */
    counts: optional(
      brief(
        object({
          added: COUNT,
          changed: COUNT,
          removed: COUNT,
          /** Snapshots of which it is not known how many names they changed. */
          unknownSnapshots: COUNT,
        }),
      ),
    ),
    /** Number of records on the page of which it is not known whether they concern the packages that are asked for. */
    notJudged: optional(described(INTEGER, 'Records that may or may not match the filter.')),
    /** What a list about packages does not say. */
    note: optional(brief(TEXT)),
    /** What the SBOMs of the tag are of, their different packages, and others that no record can be about. */
    packages: optional(brief(object({ of: TEXT, packages: COUNT, unknown: COUNT }))),
    partial: FLAG,
    missing: MAYBE_INTEGER,
  },
  { description: 'What changed between two snapshots.' },
)
export type ChangesAnswer = TypeOf<typeof CHANGES_ANSWER>
