import { createZipWriter } from '../../../src/archive/zip/writer.ts'
import type { IndexForm } from '../service/shapes/forms.ts'
import type { PublicationClock } from './clock.ts'
import { type Representation, type Stored, jsonRepresentation, zipRepresentation } from './representation.ts'

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
  form: IndexForm,
): Publisher {
  let sorted: string[] | undefined
  const ids = (): readonly string[] => (sorted ??= [...records.keys()].sort())
  const index = createPublished(clock, (at) => jsonRepresentation(indexBytes(form, ids(), records), at))
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

/** The index's bytes: compact, in the usual form one `{"id","modified"}` per record (wire facts, public feeds). */
function indexBytes(form: IndexForm, ids: readonly string[], records: ReadonlyMap<string, Stored>): Buffer {
  const entries = ids.map((id) => {
    const { modified } = records.get(id) as Stored // ids are the map's keys
    return { id, modified }
  })
  if (form !== 'lines') return Buffer.from(JSON.stringify(indexValue(form, entries)))
  return Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
}

interface Entry {
  id: string
  modified: string
}

function indexValue(form: Exclude<IndexForm, 'lines'>, entries: readonly Entry[]): object {
  if (form === 'ids') return entries.map(({ id }) => id)
  if (form === 'objects') return entries.map(({ id }) => ({ osv_id: id, tracked: true }))
  if (form === 'map') return Object.fromEntries(entries.map(({ id, modified }) => [id, modified]))
  if (form === 'keyed') return Object.fromEntries(entries.map(({ id }) => [id, { tracked: true }]))
  if (form === 'groups')
    return Object.groupBy(
      entries.map(({ id }) => id),
      ecosystemOf,
    )
  return [...entries]
}

/** The words of an id before its number: `root-os-debian` of `ROOT-OS-DEBIAN-12-CVE-2026-1`. */
function ecosystemOf(id: string): string {
  return id.split(/-(?=\d|CVE|GHSA)/)[0]?.toLowerCase() ?? ''
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
