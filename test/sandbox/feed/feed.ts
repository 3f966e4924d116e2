import { createEdits } from './edits.ts'
import { type World, createWorld } from './globals.ts'
import { type Live, type LivePlan, startLive } from './timer.ts'
import { type Publisher, createPublisher } from './publisher.ts'
import { type Representation, type Stored, decodedContent, recordRepresentation } from './representation.ts'
import type { Shape } from '../service/shapes/shape.ts'

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

/** An empty feed; fill it with `load`, or with `generate` for the seed's first records. */
export function createFeed(options: FeedOptions): {
  feed: Feed
  source: FeedSource
  generate: () => Promise<void>
} {
  const clock = createPublicationClock(options.now)
  const records = new Map<string, Stored>()
  const world = createWorld(options.seed, clock.current(), options.shape)
  const publisher = createPublisher(records, clock, options.shape.index)
  const lives = new Set<Live>()
  const edits = createEdits({ options, records, clock, publisher })
  const stored = (id: string): Stored => {
    const record = records.get(id)
    if (record === undefined) throw new Error(`the sandbox has no record ${JSON.stringify(id)}`)
    return record
  }
  const feed: Feed = {
    ...edits.commands,
    touchFeeds: () => world.touch(clock.advance()),
    freezeArchive: () => publisher.archive.freeze(),
    thawArchive: () => publisher.archive.thaw(),
    freezeIndex: () => publisher.index.freeze(),
    thawIndex: () => publisher.index.thaw(),
    ids: () => [...publisher.ids()],
    record: (id) => decodedContent(stored(id)),
    modified: (id) => stored(id).modified,
    index: () => Buffer.concat(publisher.index.current().chunks()),
    archive: () => Buffer.concat(publisher.archive.current().chunks()),
    live: (intervalMs, plan) => startLive(feed, intervalMs, plan, lives),
  }
  const source: FeedSource = {
    record: (id) => {
      const record = records.get(id)
      return record && recordRepresentation(record)
    },
    stored: (id) => records.get(id),
    count: () => records.size,
    publisher,
    world,
    stop: () => lives.forEach((live) => live.stop()),
  }
  return { feed, source, generate: edits.generate }
}

/** Gives each publication of the feed a Last-Modified: always later than the one before, never in the future. */
export interface PublicationClock {
  /** Unix milliseconds, whole seconds, of the last publication. */
  current(): number
  /** Moves on for the next publication. */
  advance(): number
}

const LAG = 86_400_000

/**
 * Several changes within one second must still differ, and none may be ahead of the clock. So the
 * first publication is a day old and each later one covers a hundredth of the way to now, at least a
 * second while there is room.
 */
export function createPublicationClock(now: () => number): PublicationClock {
  const second = (time: number): number => Math.floor(time / 1000) * 1000
  let at = second(now()) - LAG
  return {
    current: () => at,
    advance() {
      const room = second(now()) - at
      at += Math.max(Math.min(1000, Math.max(0, room)), second(room / 100))
      return at
    },
  }
}
