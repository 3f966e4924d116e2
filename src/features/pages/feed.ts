import { sha256Hex } from '../../base/digest.ts'

/** A format in which the same can be read. */
export interface Alternate {
  readonly type: string
  readonly title: string
  readonly href: string
}

/** A feed of entries, newest first. URLs are absolute, times ISO 8601 UTC. */
export interface WebFeed {
  /** Stays the same for this feed of this mirror. */
  readonly id: string
  readonly title: string
  /** Why no entry may not mean that nothing happened: what the data lack, or is not judged; null: nothing is known to. */
  readonly doubt: string | null
  readonly updated: string
  /** The feed itself, and the page that shows the same. */
  readonly self: string
  readonly home: string
  /** The older entries; null where there are none. */
  readonly next: string | null
  readonly entries: readonly FeedEntry[]
}

/** An entry of a feed; texts are plain. */
export interface FeedEntry {
  /** Never used for another entry. */
  readonly id: string
  readonly title: string
  readonly updated: string
  readonly href: string
  readonly category: string
  readonly text: string
}

/**
 * Returns a URN that stays the same for the same thing of the same mirror: a UUID of version 8 (RFC 9562) from a digest.
 * `identity`: of the mirror.
 */
export function feedUrn(identity: unknown, name: string): string {
  const hex = sha256Hex(Buffer.from(`${String(identity)} ${name}`))
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`]
  return `urn:uuid:${[...parts, hex.slice(20, 32)].join('-')}`
}
