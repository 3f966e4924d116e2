import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { expect, onTestFinished } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { pagedDirectory, wholeDirectory } from '../../../src/archive/zip/directory-bytes.ts'
import {
  type Directory,
  type DirectoryLocation,
  type ZipEntry,
  END_SPAN,
  parseDirectory,
} from '../../../src/archive/zip/directory.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import {
  type ArchiveReader,
  type ReaderLimits,
  checkedLocation,
  createArchiveReader,
} from '../../../src/archive/zip/reader.ts'
import { type ZipMember, createZipWriter } from '../../../src/archive/zip/writer.ts'

/** A member's name and what is in it. */
export type NamedContent = readonly [name: string, content: string | Buffer]

export function zipMember([name, text]: NamedContent): ZipMember {
  const content = Buffer.from(text)
  return { name, crc32: crc32(content), size: content.length, deflated: deflate(content) }
}

/** The archive that the writer makes of these members. */
export function pack(members: readonly NamedContent[]): Buffer {
  const chunks: Buffer[] = []
  const writer = createZipWriter((chunk) => chunks.push(Buffer.from(chunk)))
  for (const member of members) writer.add(zipMember(member))
  writer.finish()
  return Buffer.concat(chunks)
}

/** One read of a source: where it began and how long it was. */
export interface SourceRead {
  from: number
  bytes: number
}

export const LIMITS: ReaderLimits = { maxMemberBytes: 1_000_000 }

/** Reads a directory from memory, and checks that page by page, as that of a large file is read, it is the same. */
function parse(entries: Buffer, location: DirectoryLocation): Directory {
  const read = (position: number, into: Buffer): void => {
    if (entries.copy(into, 0, position) < into.length) throw new Error('read beyond the end')
  }
  const paged = attempt(() => parseDirectory(pagedDirectory(entries.length, read), location))
  const whole = attempt(() => parseDirectory(wholeDirectory(entries), location))
  if (whole instanceof Error) {
    expect(paged).toEqual(whole)
    throw whole
  }
  if (paged instanceof Error) throw paged
  expect(paged.count).toBe(whole.count)
  const numbers = Array.from({ length: whole.count }, (_, i) => i)
  const strides = [numbers, numbers.toReversed(), numbers.map((i) => (i * 7919) % whole.count)]
  for (const i of strides.flatMap((order) => order.slice(0, COMPARED)))
    expect([paged.entry(i), paged.regionEnd(i), paged.compressedSize(i)]).toEqual([
      ...[whole.entry(i), whole.regionEnd(i), whole.compressedSize(i)],
    ])
  paged.free()
  return whole
}

/** Entries that are compared, in each order. */
const COMPARED = 2_000

function attempt<T>(work: () => T): T | Error {
  try {
    return work()
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** A reader over bytes in memory, opened by its end record as an archive is, that records what it has read. */
export function openBytes(
  bytes: Buffer,
  { limits = LIMITS, gap = 1 << 16 }: { limits?: ReaderLimits; gap?: number } = {},
): { reader: ArchiveReader; reads: SourceRead[] } {
  const reads: SourceRead[] = []
  const tail = bytes.subarray(Math.max(0, bytes.length - END_SPAN))
  const location = checkedLocation(tail, bytes.length, limits)
  const entries = bytes.subarray(location.offset, location.offset + location.size)
  const directory = parse(entries, location)
  const read = (from: number, length: number, into?: Buffer): Promise<Buffer> => {
    reads.push({ from, bytes: length })
    const part = bytes.subarray(from, from + length)
    if (part.length < length) return Promise.reject(new Error('read beyond the end'))
    // As a file does: into the caller's buffer where it is large enough, so that stale views show.
    const target = into !== undefined && into.length >= length ? into : Buffer.alloc(length)
    part.copy(target)
    return Promise.resolve(target.subarray(0, length))
  }
  return {
    reader: createArchiveReader({ size: bytes.length, read }, directory, limits, gap),
    reads,
  }
}

/** What became of one member: its content, or why it was refused. */
export interface Outcome {
  entry: ZipEntry
  content: Buffer | null
  refused: string | null
}

/** Reads members (all by default) and copies what the visitor is shown. */
export async function readAll(
  reader: ArchiveReader,
  want: (entry: ZipEntry) => boolean = () => true,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  await reader.readMembers(want, (entry, member) => {
    const refused = 'refused' in member ? member.refused : null
    const content = 'refused' in member ? null : Buffer.from(member.content)
    outcomes.push({ entry, content, refused })
  })
  return outcomes
}

/** Name → content of everything that was not refused. */
export function contents(outcomes: readonly Outcome[]): Record<string, string | undefined> {
  return Object.fromEntries(
    outcomes.flatMap(({ entry, content }) => (content === null ? [] : [[entry.name, content.toString('latin1')]])),
  )
}

/** The message of the MirrorError('archive') that opening these bytes must end in. */
export function archiveRefusal(bytes: Buffer): string {
  try {
    openBytes(bytes)
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'archive') return error.message
    throw error
  }
  throw new Error('expected the archive to be refused')
}

/** A folder that is gone when the test ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-zip-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
