import { createPublicationClock } from './clock.ts'
import { createEdits } from './edits.ts'
import { createWorld } from './globals.ts'
import type { Feed, FeedOptions, FeedSource, Live } from './types.ts'
import { startLive } from './timer.ts'
import { createPublisher } from './publisher.ts'
import { type Stored, decodedContent, recordRepresentation } from './representation.ts'

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
