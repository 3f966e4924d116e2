import { createZipWriter } from '../../zip/writer.ts'
import type { PublicationClock } from './feed.ts'
import {
  type Representation,
  type Stored,
  jsonRepresentation,
  zipRepresentation,
} from './representation.ts'

/** One published file: built when first asked for after a change; can be frozen as it is. */
interface Published {
  current(): Representation
  freeze(): void
  thaw(): void
  frozen(): boolean
}

/** Index and archive as they are published, rebuilt when the records changed. */
export interface Publisher {
  index: Published
  archive: Published
  /** All ids, sorted. */
  ids(): readonly string[]
  /** Publishes the current records; returns the given ids. */
  publish(ids: string[], given?: { index?: Buffer; archive?: Buffer }): string[]
}

/** Publishes the index and the archive of a record set that others change. */
export function createPublisher(
  records: ReadonlyMap<string, Stored>,
  clock: PublicationClock,
): Publisher {
  let sorted: string[] | undefined
  const ids = (): readonly string[] => (sorted ??= [...records.keys()].sort())
  const index = createPublished(clock, (at) => jsonRepresentation(indexBytes(ids(), records), at))
  const archive = createPublished(clock, (at) => zipRepresentation(pack(ids(), records), at))
  return {
    index,
    archive,
    ids,
    publish(touched, given = {}) {
      sorted = undefined
      const at = clock.current()
      index.outdate(given.index && jsonRepresentation(given.index, at))
      archive.outdate(given.archive && zipRepresentation([given.archive], at))
      return touched
    },
  }
}

function createPublished(
  clock: PublicationClock,
  build: (lastModified: number) => Representation,
): Published & { outdate(replacement?: Representation): void } {
  let fresh: Representation | undefined
  let frozen: Representation | undefined
  let at = clock.current()
  const latest = (): Representation => (fresh ??= build(at))
  return {
    current: () => frozen ?? latest(),
    frozen: () => frozen !== undefined,
    freeze: () => void (frozen ??= latest()),
    thaw: () => void (frozen = undefined),
    outdate(replacement) {
      fresh = replacement
      at = clock.current()
    },
  }
}

/** The index's bytes: compact, one `{"id","modified"}` per record (wire facts, public feeds). */
function indexBytes(ids: readonly string[], records: ReadonlyMap<string, Stored>): Buffer {
  const parts = ids.map((id) => {
    const { modified } = records.get(id) as Stored // ids are the map's keys
    return JSON.stringify({ id, modified })
  })
  return Buffer.from(`[${parts.join(',')}]`)
}

function pack(ids: readonly string[], records: ReadonlyMap<string, Stored>): Buffer[] {
  const chunks: Buffer[] = []
  const writer = createZipWriter((chunk) => chunks.push(Buffer.from(chunk)))
  for (const id of ids) {
    const { crc32, size, deflated } = records.get(id) as Stored // ids are the map's keys
    writer.add({ name: `${id}.json`, crc32, size, deflated })
  }
  writer.finish()
  return chunks
}
