import { readSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { MirrorError } from '../../base/errors.ts'
import { expectFile, READING } from '../../base/files.ts'
import {
  type Directory,
  type DirectoryLocation,
  END_SPAN,
  type ZipEntry,
  locateDirectory,
  parseDirectory,
} from './directory.ts'
import { type Verified, createBatch } from './batch.ts'
import { pagedDirectory, wholeDirectory } from './directory-bytes.ts'
import { type Content, type ZipFault, readMember } from './member.ts'

/** Limits for what a reader accepts, against hostile archives. */
export interface ReaderLimits {
  /** Largest inflated size of one member, bytes. */
  maxMemberBytes: number
  /** Largest central directory, bytes. Default 512 MiB. */
  maxDirectoryBytes?: number
}

/** Source of an archive's bytes: a local file, or ranges of a remote one. */
export interface ByteSource {
  readonly size: number
  /**
   * Returns exactly `length` bytes from `position`; `into` may be used as the buffer. Throws if they are not available.
   */
  read(position: number, length: number, into?: Buffer): Promise<Buffer>
}

/** An open archive whose structure is valid; its members are verified as they are read. */
export interface ArchiveReader {
  readonly size: number
  readonly directory: Directory
  /**
   * Reads the wanted members in file order, consecutive ones in one read of about 1 MiB, and calls `visit` with each
   * member's verified content or the reason for its refusal. The views passed are valid during the call only. Yields to
   * the event loop between reads.
   */
  readMembers(
    want: (entry: ZipEntry) => boolean,
    visit: (entry: ZipEntry, member: Content | ZipFault) => void,
  ): Promise<void>
  /**
   * Does the same with the members of these numbers in the directory, in this order, and waits for what `visit` returns.
   * Members that are neighbours in both orders share a read.
   */
  readNumbered(
    numbers: Iterable<number>,
    visit: (entry: ZipEntry, member: Content | ZipFault) => Promise<void> | undefined,
  ): Promise<void>
}

/** Wanted members no further apart share a read, bytes. */
const GAP = 1 << 16
/** Size of a directory from which a file's is read page by page, bytes. */
const PAGED_FROM = 1 << 20
/** Largest read that is done at once, bytes, except for each one in `YIELD_READS`, which yields to the event loop. */
const SMALL = 1 << 16
const YIELD_READS = 256
let smallReads = 0

/** An open archive on disk. */
export interface ArchiveFile extends ArchiveReader {
  /** Closes the file and frees the directory; afterwards the archive cannot be read. */
  close: () => Promise<void>
}

/** Opens an archive on disk by its central directory. Throws `archive` if its structure is invalid. */
export async function openArchive(path: string, limits: ReaderLimits): Promise<ArchiveFile> {
  const file = await open(path, READING)
  try {
    const stats = await file.stat()
    expectFile(stats)
    const { size } = stats
    const source: ByteSource = { size, read: (at, length, into) => readAt(file, at, length, into) }
    const location = await locateIn(source, limits)
    const bytes =
      location.size > PAGED_FROM
        ? pagedDirectory(location.size, (at, into) => readNow(file, location.offset + at, into))
        : wholeDirectory(await source.read(location.offset, location.size))
    return closable(createArchiveReader(source, parseDirectory(bytes, location), limits, GAP), file)
  } catch (error) {
    await file.close()
    throw error
  }
}

function closable(reader: ArchiveReader, file: FileHandle): ArchiveFile {
  let opened: ArchiveReader | null = reader
  const current = (): ArchiveReader => {
    if (opened === null) throw new MirrorError('internal', 'the archive was closed')
    return opened
  }
  return {
    size: reader.size,
    get directory() {
      return current().directory
    },
    readMembers: (want, visit) => current().readMembers(want, visit),
    readNumbered: (numbers, visit) => current().readNumbered(numbers, visit),
    close: () => {
      opened?.directory.free()
      opened = null
      return file.close()
    },
  }
}

/**
 * Opens an archive from any source by its central directory. Wanted members no further apart than `gap` bytes share a
 * read. Throws `archive` if its structure is invalid.
 */
export async function openSource(source: ByteSource, limits: ReaderLimits, gap = GAP): Promise<ArchiveReader> {
  const location = await locateIn(source, limits)
  const bytes = await source.read(location.offset, location.size)
  const directory = parseDirectory(wholeDirectory(bytes), location)
  return createArchiveReader(source, directory, limits, gap)
}

async function locateIn(source: ByteSource, limits: ReaderLimits): Promise<DirectoryLocation> {
  const { size } = source
  const tail = await source.read(Math.max(0, size - END_SPAN), Math.min(size, END_SPAN))
  return checkedLocation(tail, size, limits)
}

/** Returns the member count in the end record of an archive on disk. Throws `archive` if that record is invalid. */
export async function countMembers(path: string): Promise<number> {
  const file = await open(path, READING)
  try {
    const stats = await file.stat()
    expectFile(stats)
    const { size } = stats
    const span = Math.min(size, END_SPAN)
    const { count, offset } = locateDirectory(await readAt(file, size - span, span), size)
    const first = count > 0 ? await readAt(file, offset, 4) : null
    if (first === null || first.readUInt32LE(0) === 0x02014b50) return count
    throw new MirrorError('archive', 'no central directory where the end record says')
  } finally {
    await file.close()
  }
}

/** Works as `locateDirectory`; also throws `archive` if the directory is larger than the limit. */
export function checkedLocation(tail: Buffer, archiveSize: number, limits: ReaderLimits): DirectoryLocation {
  const location = locateDirectory(tail, archiveSize)
  const cap = limits.maxDirectoryBytes ?? 512 * 1024 * 1024
  if (location.size <= cap) return location
  throw new MirrorError('archive', `central directory of ${location.size} bytes is over the cap of ${cap}`)
}

/** Creates a reader over any source. Wanted members no further apart than `gap` bytes share a read. */
export function createArchiveReader(
  source: ByteSource,
  directory: Directory,
  limits: ReaderLimits,
  gap: number,
): ArchiveReader {
  const largest = limits.maxMemberBytes + WINDOW // no allowed member is larger when compressed
  const buffer = Buffer.allocUnsafe(Math.min(WINDOW, source.size))
  const readNumbered: ArchiveReader['readNumbered'] = async (numbers, visit) => {
    const batch = createBatch(limits.maxMemberBytes)
    const pass = async (members: Iterable<Verified>): Promise<void> => {
      for (const [entry, member] of members) {
        const waiting = visit(entry, member)
        if (waiting !== undefined) await waiting
      }
    }
    const readRun = async (run: MemberRun): Promise<void> => {
      const window = run.bytes > largest ? null : await source.read(run.from, run.bytes, buffer)
      for (const i of run.members) {
        const entry = directory.entry(i)
        const region = window?.subarray(entry.offset - run.from, regionEnd(directory, i) - run.from)
        if (region !== undefined && batch.add(entry, region)) continue
        await pass(batch.take())
        if (region === undefined) await pass([[entry, { refused: `its ${run.bytes} bytes are over the cap` }]])
        else if (!batch.add(entry, region)) await pass([[entry, readMember(entry, region, limits.maxMemberBytes)]])
      }
    }
    try {
      for (const run of planRuns(directory, numbers, gap)) await readRun(run)
      await pass(batch.take())
    } finally {
      batch.free()
    }
  }
  return {
    size: source.size,
    directory,
    readNumbered,
    readMembers: (want, visit) =>
      readNumbered(wantedNumbers(directory, want), (entry, member) => {
        visit(entry, member)
        return undefined
      }),
  }
}

function* wantedNumbers(directory: Directory, want: (entry: ZipEntry) => boolean): Generator<number> {
  for (let i = 0; i < directory.count; i++) if (want(directory.entry(i))) yield i
}

/** Fills a buffer. */
function readNow(file: FileHandle, position: number, into: Buffer): void {
  for (let read = 0; read < into.length;) {
    const bytes = readSync(file.fd, into, read, into.length - read, position + read)
    if (bytes === 0) throw new MirrorError('archive', 'the archive ended while it was read')
    read += bytes
  }
}

async function readAt(file: FileHandle, position: number, length: number, into?: Buffer): Promise<Buffer> {
  const target = into !== undefined && into.length >= length ? into : Buffer.allocUnsafe(length)
  let read = 0
  while (read < length) {
    // A read of few bytes takes less time than handing it to another thread.
    const left = length - read
    const isSmall = left <= SMALL && ++smallReads % YIELD_READS > 0
    const bytesRead = isSmall
      ? readSync(file.fd, target, read, left, position + read)
      : (await file.read(target, read, left, position + read)).bytesRead
    if (bytesRead === 0) throw new MirrorError('archive', 'the archive ended while it was read')
    read += bytesRead
  }
  return target.subarray(0, length)
}

/** Bytes that are read at once; only a member with more has a read of its own. */
const WINDOW = 1 << 20
/** Bytes of a local header with the longest possible name and extra field. */
const MAX_HEADER = 30 + 2 * 0xffff

/** Size of a region that is read as it is, bytes. */
const SMALL_REGION = 1 << 16

/** Members that are read together. */
interface MemberRun {
  from: number
  bytes: number
  /** Numbers in the directory; an entry is made when its member is read: the run may have thousands. */
  members: number[]
}

/** Returns the end of a member's region: no member may extend into the next one. */
function regionEnd(directory: Directory, i: number): number {
  const end = directory.regionEnd(i)
  // Mostly: then the entry is read once, from a directory that may be on disk, and not for this too.
  if (end - directory.offset(i) <= SMALL_REGION) return end
  // The space between two members may exceed what the first one needs: do not read it.
  const most = directory.offset(i) + MAX_HEADER + directory.compressedSize(i)
  return Math.min(end, most)
}

/** Groups consecutive members into reads of at most a window; a member larger than that gets a read of its own. */
function* planRuns(directory: Directory, numbers: Iterable<number>, gap: number): Generator<MemberRun> {
  let run: MemberRun | null = null
  for (const i of numbers) {
    const offset = directory.offset(i)
    const end = regionEnd(directory, i)
    if (run !== null && !isNear(run, offset, end, gap)) {
      yield run
      run = null
    }
    run ??= { from: offset, bytes: 0, members: [] }
    run.bytes = Math.max(run.from + run.bytes, end) - Math.min(run.from, offset)
    run.from = Math.min(run.from, offset)
    run.members.push(i)
  }
  if (run !== null) yield run
}

/** Returns whether a read with this region has at most a window, and no gap that is too large. */
function isNear({ from, bytes }: MemberRun, start: number, end: number, gap: number): boolean {
  const before = start - from - bytes
  const after = from - end
  return before <= gap && after <= gap && Math.max(from + bytes, end) - Math.min(from, start) <= WINDOW
}
