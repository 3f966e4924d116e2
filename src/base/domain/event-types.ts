import { RESOURCES, listPathOf } from './resources.ts'
import { SOURCES, type SourceName } from './sources.ts'

/** A type of event: what its events name, and what a refresh that they cause checks. */
interface EventType {
  /** `{vendor}` is `upstream.vendor`; `webhooks.types` selects which types cause a refresh. */
  readonly type: string
  /** `image`: a tag of an image, in the fields of `webhooks/receive/event-images.ts`. `snapshot`: one of a source mirror. */
  readonly names: 'image' | 'snapshot'
  /** Sources that are synced. */
  readonly sources: readonly SourceName[]
  /** Lists of the catalog that are walked, by resource; all others are left to the polls. */
  readonly lists: readonly string[]
  /** The one of these lists in which the named thing appears: a refresh that could not read it is repeated. */
  readonly appearsIn: string | null
}

/** Every type of event (service API, section 6), and the mirror's own; receiver, refresh, relay and CLI read this table. */
export const EVENT_TYPES = {
  imageCreated: {
    type: 'io.{vendor}.cr.image.created.v1',
    names: 'image',
    sources: ['feeds', 'osv', 'catalog'],
    lists: ['images', 'tags'],
    appearsIn: 'tags',
  },
  snapshotPublished: {
    type: 'io.patchmirror.snapshot.published.v1',
    names: 'snapshot',
    sources: ['feeds', 'osv', 'catalog'],
    lists: ['images', 'tags'],
    appearsIn: null,
  },
} as const satisfies Record<string, EventType>

/** The type of the event for changed findings of mirrored tags. No mirror refreshes for it: nothing is to be fetched. */
export const FINDINGS_CHANGED = 'io.patchmirror.findings.changed.v1'

const ALL: readonly EventType[] = Object.values(EVENT_TYPES)

/**
 * What a refresh checks: all that some type asks for. One refresh settles every event that waits, and one whose type or
 * content is not understood may be of any type.
 */
export const REFRESHED_SOURCES = SOURCES.filter((one) => ALL.some((type) => type.sources.includes(one)))
/** Names of the lists that a refresh walks. */
export const REFRESHED_LISTS = RESOURCES.map(({ name }) => name).filter((name) =>
  ALL.some(({ lists }) => lists.includes(name)),
)
/** Paths of the lists in which named things appear, as run facts name them. */
export const AWAITED_LISTS = RESOURCES.filter(({ name }) => ALL.some(({ appearsIn }) => appearsIn === name)).map(
  (one) => listPathOf(one),
)

/**
 * How a refresh came out. A partial run counts as checked unless it could not read the list of tags: `findAnnounced` decides whether the
 * announced tag is there. A quarantined catalog run does not count, because it publishes nothing. A quarantined feed counts: it waits
 * for the operator's decision, and a retry would change nothing.
 */
export interface RefreshOutcome {
  /** Whether every requested source was checked. */
  readonly ok: boolean
  /** Why not, in one line. */
  readonly reason: string | null
  /** Why the catalog was not checked, in which announced images appear; null: it was, whatever failed besides. */
  readonly imageReason: string | null
}

/** Returns a type, or a pattern of types, with the vendor's name in it. */
export function withVendor(type: string, vendor: string): string {
  return type.replaceAll('{vendor}', vendor)
}

/** Returns the type of the event that announces a new tag. */
export function imageCreatedType(vendor: string): string {
  return withVendor(EVENT_TYPES.imageCreated.type, vendor)
}

/** Returns what events of a type name; `image` for a type that is not in the table. */
export function namedBy(type: unknown): EventType['names'] {
  return ALL.find((one) => one.type === type)?.names ?? 'image'
}

/** Reports whether a type is of the events that mirrors make: what they tell is new, whatever they name. */
export function isOfMirror(type: unknown): boolean {
  return type === FINDINGS_CHANGED || namedBy(type) === 'snapshot'
}
