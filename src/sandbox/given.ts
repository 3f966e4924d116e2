import { readFile } from 'node:fs/promises'
import { inflateRawSync } from 'node:zlib'
import { type Scanned, scanZip } from './scan.ts'
import { type Stored, store } from './stored.ts'

/** A feed read from files, with the bytes to serve until it changes. */
export interface Given {
  records: Stored[]
  archive: Buffer
  /** The given index's bytes; absent when none was given. */
  index?: Buffer
}

/**
 * Reads an archive of `{id}.json` members and, when given, its index. Without an index a record's
 * `modified` is the text in the record. Throws when a file cannot be read or is not what it should be.
 */
export async function readGiven(
  zipPath: string,
  indexPath: string | undefined,
  lastModified: number,
): Promise<Given> {
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
