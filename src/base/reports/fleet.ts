import {
  COUNT,
  DATE,
  FLAG,
  MAYBE_DATE,
  MAYBE_NUMBER,
  MAYBE_TEXT,
  TEXT,
  type TypeOf,
  byName,
  maybe,
  object,
  oneOf,
} from '../schema.ts'

/** The mirror that leads a fleet, by its lease. */
const FLEET_LEADER = object({
  name: TEXT,
  /** Where it takes webhooks; null: unknown. */
  url: MAYBE_TEXT,
  epoch: COUNT,
  /** By the leader's clock. */
  expiresAt: DATE,
})

/** State of a mirror of a fleet. Generations are numbers, 0: none. Times in ISO 8601 UTC. */
export const FLEET = object(
  {
    /** The object store, without secrets. */
    url: TEXT,
    name: TEXT,
    site: MAYBE_TEXT,
    role: oneOf(['auto', 'writer', 'reader', 'standby']),
    /** Whether this mirror syncs and publishes now. */
    leads: FLAG,
    /** Null: no mirror has the lease, the store has no lease, or it could not be read. */
    leader: maybe(FLEET_LEADER),
    /** Epoch of the own leadership, else of the newest known generation. */
    epoch: COUNT,
    /** The newest generation that this mirror knows of. */
    seen: COUNT,
    /** The newest that is downloaded and verified. */
    prepared: COUNT,
    /** The one that is served. */
    served: COUNT,
    /** Seconds for which the newest known generation should have been served and is not; null before the first. */
    lagSeconds: MAYBE_NUMBER,
    /** Of the newest known generation. */
    publishedAt: MAYBE_DATE,
    activatesAt: MAYBE_DATE,
    /** What does not work now; the mirror serves what it has. `refused`: why a generation is refused; null: another cause. */
    failing: maybe(object({ since: DATE, refused: MAYBE_TEXT, message: TEXT })),
    /** Since when newer snapshots are stored here than are served, because they are not published or not yet active. */
    holdingBackSince: MAYBE_DATE,
    /** Whether this mirror leads and syncs nothing, because a rollback was published and not released. */
    paused: FLAG,
    /** Times that another mirror had published under a newer lease, since the start. */
    fenced: COUNT,
    /** Calls of the store since the start, by verb and then by outcome. */
    requests: byName(byName(COUNT)),
    /** Bytes of objects since the start. */
    bytes: object({ up: COUNT, down: COUNT }),
  },
  { description: 'In a fleet alone.' },
)
export type FleetStatus = TypeOf<typeof FLEET>
