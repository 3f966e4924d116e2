import { readFile } from 'node:fs/promises'
import { inflateRawSync } from 'node:zlib'
import { type Stored, store } from './representation.ts'

/** A feed read from files, with the bytes to serve until it changes. */
interface Given {
  records: Stored[]
  archive: Buffer
  /** The given index's bytes; absent when none was given. */
  index?: Buffer
}

/**
 * Reads an archive of `{id}.json` members and, when given, its index. Without an index a record's
 * `modified` is the text in the record. Throws when a file cannot be read or is not what it should be.
 */
export async function readGiven(zipPath: string, indexPath: string | undefined, lastModified: number): Promise<Given> {
  const archive = await readFile(zipPath)
  const index = indexPath === undefined ? undefined : await readFile(indexPath)
  const stamps = index === undefined ? undefined : readStamps(index)
  const records: Stored[] = []
  for (const member of scanZip(archive)) {
    if (!member.name.endsWith('.json')) continue
    const id = member.name.slice(0, -'.json'.length)
    const modified = stamps?.get(id) ?? modifiedOf(inflate(member))
    records.push(toStored(member, id, modified, lastModified))
  }
  return { records, archive, ...(index === undefined ? {} : { index }) }
}

/** The `modified` text of a record; year 1 when it has none or is not JSON. */
export function modifiedOf(bytes: Buffer): string {
  try {
    const record: unknown = JSON.parse(bytes.toString())
    if (typeof record === 'object' && record !== null && 'modified' in record) {
      if (typeof record.modified === 'string') return record.modified
    }
  } catch {
    // Not JSON: such a record is served all the same, that is what a test wants.
  }
  return '0001-01-01T00:00:00Z'
}

function toStored(member: Scanned, id: string, modified: string, lastModified: number): Stored {
  if (member.method !== 8) return store(id, modified, inflate(member), lastModified)
  const { crc32, size, data } = member
  return { id, modified, crc32, size, deflated: data, lastModified }
}

function inflate(member: Scanned): Buffer {
  return member.method === 8 ? inflateRawSync(member.data) : member.data
}

function readStamps(index: Buffer): Map<string, string> {
  const entries = JSON.parse(index.toString()) as { id: string; modified: string }[]
  return new Map(entries.map((entry) => [entry.id, entry.modified]))
}

/** Position of a member in a given archive. Offsets and sizes in bytes. */
interface Scanned {
  name: string
  method: number
  crc32: number
  size: number
  /** The member's data as stored, compressed or not. */
  data: Buffer
  /** Where its two headers begin. */
  local: number
  central: number
}

/**
 * Lists an archive's members by its central directory, Zip64 included; for archives one trusts (the
 * sandbox's own or one given to it). Throws when there is no end record or an entry is damaged.
 */
export function scanZip(zip: Buffer): Scanned[] {
  const end = zip.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  if (end < 0) throw new Error('not a zip archive: no end record')
  let count = zip.readUInt16LE(end + 10)
  let at = zip.readUInt32LE(end + 16)
  if (count === 0xffff || at === 0xffffffff) {
    const far = Number(zip.readBigUInt64LE(end - 12)) // the locator is the 20 bytes before
    count = Number(zip.readBigUInt64LE(far + 32))
    at = Number(zip.readBigUInt64LE(far + 48))
  }
  const members: Scanned[] = []
  for (let i = 0; i < count; i++) {
    const member = scanEntry(zip, at)
    members.push(member)
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return members
}

function scanEntry(zip: Buffer, central: number): Scanned {
  if (zip.readUInt32LE(central) !== 0x02014b50) throw new Error('damaged central directory')
  const nameEnd = central + 46 + zip.readUInt16LE(central + 28)
  const compressed = zip.readUInt32LE(central + 20)
  let local = zip.readUInt32LE(central + 42)
  // Sizes fit 32 bits in any feed, so a Zip64 extra field can only contain an offset here.
  if (local === 0xffffffff) local = Number(zip.readBigUInt64LE(nameEnd + 4))
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
  return {
    name: zip.toString('utf8', central + 46, nameEnd),
    method: zip.readUInt16LE(central + 10),
    crc32: zip.readUInt32LE(central + 16),
    size: zip.readUInt32LE(central + 24),
    data: zip.subarray(start, start + compressed),
    local,
    central,
  }
}
