import type { Shape } from '../service/shapes/shape.ts'
import type { PublicationClock } from './clock.ts'
import type { World } from './globals.ts'
import type { Publisher } from './publisher.ts'
import type { Representation, Stored } from './representation.ts'

/**
 * The feed and its life. Every command publishes at once: a new index and archive with new ETags and a
 * later Last-Modified. Commands that touch records return the ids they touched (fewer than n when there
 * are not enough).
 */
export interface Feed {
  add(n: number): string[]
  /** New content, `modified` forward to the clock. */
  change(n: number): string[]
  /** New content, `modified` as it was: index readers cannot see it. */
  changeSilently(n: number): string[]
  /** New content, `modified` days earlier than it was. */
  moveBackwards(n: number): string[]
  withdraw(n: number): string[]
  /** Each fixed version one lower: scanners then report vulnerable installations as fixed. */
  lowerFixes(n: number): string[]
  /** Nothing but the id and the date stays. */
  empty(n: number): string[]
  remove(n: number): string[]
  /** Sets one record's exact bytes; `modified` defaults to the text in them. */
  put(id: string, bytes: Uint8Array | string, modified?: string): string[]
  delete(id: string): string[]
  /** Replaces all records by an archive's, served byte for byte until the next change. */
  load(zipPath: string, indexPath?: string): Promise<string[]>
  /** Changes the patch feed and the CVE feed; returns the packages, as `alpine/3.18/curl`. */
  touchFeeds(): string[]
  /** The archive stays as it is, validators included, while everything else moves on. */
  freezeArchive(): void
  thawArchive(): void
  /** The same for the index: records and archive are then newer than the index. */
  freezeIndex(): void
  thawIndex(): void
  /** All ids, sorted by UTF-16 code units as the index is. */
  ids(): string[]
  /** Exact bytes; throws on an unknown id. */
  record(id: string): Buffer
  /** The `modified` text the index gives; throws on an unknown id. */
  modified(id: string): string
  index(): Buffer
  archive(): Buffer
  /** Changes the feed by the plan every `intervalMs` until stopped or the sandbox closes. */
  live(intervalMs: number, plan?: LivePlan): Live
}

/** What the server reads: representations of the feed as it is now. */
export interface FeedSource {
  record(id: string): Representation | undefined
  stored(id: string): Stored | undefined
  count(): number
  publisher: Publisher
  world: World
  stop(): void
}

/** What a feed is generated from; `now` in unix milliseconds. */
export interface FeedOptions {
  seed: number
  records: number
  large: number
  /** Whether about every sixth record is without its `schema_version`. */
  malformed: boolean
  now: () => number
  shape: Shape
}

/** What the commands work on. */
export interface FeedParts {
  options: FeedOptions
  records: Map<string, Stored>
  clock: PublicationClock
  publisher: Publisher
}

/** How many records each beat of a living feed touches; absent means none. */
export interface LivePlan {
  add?: number
  change?: number
  changeSilently?: number
  withdraw?: number
  remove?: number
  moveBackwards?: number
  touchFeeds?: boolean
}

/** A running timer mode. */
export interface Live {
  stop(): void
}
