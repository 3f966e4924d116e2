import { SOURCES } from '../domain/sources.ts'
import {
  FLAG,
  MAYBE_INTEGER,
  MAYBE_TEXT,
  TEXT,
  TEXTS,
  type TypeOf,
  brief,
  described,
  list,
  object,
  oneOf,
  optional,
} from '../schema.ts'
import { STORAGE_MEMBERS } from './storage.ts'

/** Whether a part is ready, and why. */
const VERDICT = object({ ready: FLAG, reason: TEXT })
export type Verdict = TypeOf<typeof VERDICT>

/** The verdict on one source. */
const SOURCE_READINESS = object({
  name: brief(oneOf(SOURCES)),
  ready: FLAG,
  reason: TEXT,
  /** Paths of its lists that are not known to be complete; absent: there are none. */
  partialLists: optional(TEXTS),
})
export type SourceReadiness = TypeOf<typeof SOURCE_READINESS>

/** The verdict for load balancers, as `/-/ready` answers it. */
export const READINESS = object(
  {
    ready: FLAG,
    sources: list(SOURCE_READINESS),
    storage: brief(object({ ready: FLAG, ...STORAGE_MEMBERS })),
    /** Where the views for scanners were made by another version, or are damaged: they are not served. */
    views: optional(brief(VERDICT)),
    /** In a fleet: whether its generations are served in time. */
    fleet: optional(brief(described(VERDICT, 'In a fleet alone.'))),
  },
  { description: 'Whether every source is served and recent, and the data folder writable.' },
)
export type Readiness = TypeOf<typeof READINESS>

/** The page for load balancers that send webhooks to the mirror that syncs, as `/-/leader` answers it. */
export const LEADER = object(
  {
    leader: described(FLAG, 'Whether it is the mirror that answers.'),
    /** Null: no fleet. */
    epoch: MAYBE_INTEGER,
    name: MAYBE_TEXT,
    url: MAYBE_TEXT,
  },
  { description: 'The mirror that leads a fleet; null: unknown.' },
)
export type LeaderPage = TypeOf<typeof LEADER>
