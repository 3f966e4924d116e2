import type { Fault } from './fault.ts'
import type { FeedSource } from '../feed/types.ts'
import { hostileZip } from './hostile-zip.ts'
import { mutate } from '../feed/mutate.ts'
import { createRandom } from '../feed/random.ts'
import type { RawMember } from './raw-zip.ts'
import { type Representation, jsonRepresentation, zipRepresentation, decodedContent } from '../feed/representation.ts'
import type { Resource } from '../feed/routes.ts'
import { scanZip } from '../feed/from-archive.ts'

/**
 * What a fault makes of a resource before it is negotiated; transport faults leave it as it is. A
 * distorted index, archive or record has an ETag of its own, so that conditional requests meet it too.
 */
export function distort(
  fault: Fault,
  resource: Resource,
  { source, now }: { source: FeedSource; now: () => number },
): Representation {
  const what = resource.representation
  const bytes = (): Buffer => Buffer.concat(what.chunks())
  const zip = (made: Buffer): Representation => zipRepresentation([made], what.lastModified)
  const json = (value: unknown): Representation =>
    jsonRepresentation(Buffer.from(JSON.stringify(value)), what.lastModified)
  if (fault.kind === 'wrongCrc') return zip(spoilCrc(bytes(), fault.member ?? 0))
  if (fault.kind === 'truncatedZip') {
    return zip(bytes().subarray(0, Math.floor(what.size * (fault.keep ?? 0.5))))
  }
  if (fault.kind === 'archive') return zip(hostileZip(fault.archive, rawMembers(bytes())))
  if (fault.kind === 'shrinkIndex') {
    const entries = entriesOf(bytes())
    return json(entries.slice(0, Math.floor(entries.length * (fault.keep ?? 0.5))))
  }
  if (fault.kind === 'ghostIds') return json([...entriesOf(bytes()), ...ghosts(fault.count ?? 3)])
  if (fault.kind === 'duplicateIds') return json(twice(entriesOf(bytes()), fault.count ?? 3))
  if (fault.kind === 'notArray') return json({ records: entriesOf(bytes()) })
  if (fault.kind === 'newerRecords') return restamped(source, resource, 'forward', now())
  if (fault.kind === 'staleRecords') return restamped(source, resource, 'backward', now())
  return what
}

interface Entry {
  id: string
  modified: string
}

function entriesOf(index: Buffer): Entry[] {
  return JSON.parse(index.toString()) as Entry[] // the sandbox's own index, or one it was given
}

function ghosts(count: number): Entry[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `ROOT-GHOST-CVE-2026-${1000 + i}`,
    modified: '2026-05-01T00:00:00Z',
  }))
}

function twice(entries: Entry[], count: number): Entry[] {
  const again = entries.slice(0, count).map(({ id }) => ({ id, modified: '2026-05-02T03:04:05Z' }))
  return [...entries, ...again]
}

function spoilCrc(zip: Buffer, nth: number): Buffer {
  const member = scanZip(zip)[nth]
  if (member === undefined) return zip
  const spoiled = Buffer.from(zip)
  const wrong = (member.crc32 ^ 0xffffffff) >>> 0
  spoiled.writeUInt32LE(wrong, member.local + 14)
  spoiled.writeUInt32LE(wrong, member.central + 16)
  return spoiled
}

function rawMembers(zip: Buffer): RawMember[] {
  return scanZip(zip).map(({ name, method, crc32, size, data }) => ({
    name,
    data,
    method,
    crc32,
    size,
    compressedSize: data.length,
  }))
}

function restamped(
  source: FeedSource,
  { id = '', representation }: Resource,
  stamp: 'forward' | 'backward',
  now: number,
): Representation {
  const stored = source.stored(id)
  if (stored === undefined) return representation
  const before = { bytes: decodedContent(stored), modified: stored.modified }
  const changed = mutate(createRandom(stored.crc32), before, { stamp, now })
  if (changed === null) return representation
  return jsonRepresentation(changed.bytes, representation.lastModified)
}
