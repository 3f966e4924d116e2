import {
  COUNT,
  FLAG,
  MAYBE_DATE,
  MAYBE_TEXT,
  PROMISED,
  TEXT,
  type TypeOf,
  brief,
  described,
  list,
  maybe,
  object,
  oneOf,
} from '../schema.ts'

/** A date of a record on this mirror. */
const NOTED_DATE = object(
  {
    /** ISO 8601 UTC; null: unknown. */
    at: MAYBE_DATE,
    /** False: at the latest then; the record was there before dates were noted. */
    exact: FLAG,
  },
  { description: 'A date; not exact: at the latest then.' },
)
export type NotedDate = TypeOf<typeof NOTED_DATE>

/** Dates that the record itself has, as upstream writes them; null: it has none. */
const UPSTREAM_DATES = object(
  { published: MAYBE_TEXT, modified: MAYBE_TEXT, withdrawn: MAYBE_TEXT },
  { description: 'The dates in the record; null: removed.', [PROMISED]: [] },
)
export type UpstreamDates = TypeOf<typeof UPSTREAM_DATES>

/** A package in the SBOM of a tag that a record is a finding of. */
const TAG_WITH_RECORD = object({
  /** The id of the tag in the service's list, and what people call it. */
  id: TEXT,
  name: TEXT,
  ecosystem: TEXT,
  package: TEXT,
  version: TEXT,
  /** The source package by whose name it was found; null: by its own name. */
  source: MAYBE_TEXT,
  /** Whether the record names a fixed version, or the service has patched it. */
  fixable: FLAG,
  /** Whether VEX rules it out in this tag. */
  suppressed: FLAG,
})
export type TagWithRecord = TypeOf<typeof TAG_WITH_RECORD>

/** The mirrored tags with a record. */
const TAGS_WITH_RECORD = object({
  /** Null where they are not known, or not shown. */
  listed: maybe(list(TAG_WITH_RECORD)),
  /** Number of tags, also of those that are not listed. */
  count: maybe(COUNT),
  /** Judged tags without it of which that is not certain: not all of them could be compared with it. */
  uncertain: maybe(COUNT),
  /** Mirrored tags, and those of them that are judged: of the others nothing is known. */
  counts: maybe(object({ tags: COUNT, judged: COUNT })),
  /** Whether they were judged by the records and tags that are served; false: by earlier ones. */
  current: maybe(FLAG),
  /** Why they are not known, or not shown. */
  notShown: MAYBE_TEXT,
})
export type TagsWithRecord = TypeOf<typeof TAGS_WITH_RECORD>

/** Since when a record is known, as `/-/records/{id}` answers it. */
export const RECORD_DATES = object(
  {
    id: TEXT,
    state: oneOf(['present', 'removed']),
    firstSeen: NOTED_DATE,
    /** When it first named a fix. */
    fixSeen: described(maybe(NOTED_DATE), 'Null: it never named a fix.'),
    /** When its content last became another one. */
    changed: NOTED_DATE,
    /** Of the last removal, and when it was there again; null: never. */
    removedAt: MAYBE_DATE,
    returnedAt: MAYBE_DATE,
    upstream: maybe(UPSTREAM_DATES),
    asOf: MAYBE_DATE,
    /** The limit that the data exceeds. */
    stale: MAYBE_TEXT,
    tags: brief(TAGS_WITH_RECORD),
  },
  { description: 'Since when a record is known: publications of snapshots.' },
)
export type RecordAnswer = TypeOf<typeof RECORD_DATES>

/** The part of it that the mirror itself noted. */
export type DescribedDates = Omit<RecordAnswer, 'upstream' | 'asOf' | 'stale' | 'tags'>
