import { sha256Of } from '../../../base/digest.ts'
import { freeBytes } from '../../../base/free-bytes.ts'
import { MirrorError } from '../../../base/errors.ts'
import { namesFix } from '../../../base/domain/named-fix.ts'
import { type OsvScope, type ScopeSettings, createOsvScope } from '../../../base/domain/osv-scope.ts'
import { type Chunk, type ChunkThread, TRANSFER_BYTES, type SendChunk } from '../../../base/threads/chunks.ts'
import { type SecretSearch, createSecretSearch } from '../../../upstream/secret-search.ts'
import type { Directory } from '../../../archive/zip/directory.ts'
import type { Content, ZipFault } from '../../../archive/zip/member.ts'
import type { ArchiveReader } from '../../../archive/zip/reader.ts'
import { identify } from '../record.ts'
import { type MemberToWrite, createCheckedWriter } from './checked.ts'

/** Which members are read, and how they are checked. Survives a structured clone. */
export interface ReadingTask {
  /** Numbers of the members in the archive's directory, in the order in which they are passed on; or what is left of those that two threads share. */
  readonly numbers: Uint32Array | SharedBlocks
  /** Credentials that no record may contain. */
  readonly secrets: readonly string[]
  readonly scope: ScopeSettings
}

/** Ending of the name of a record's member. */
export const RECORD_ENDING = '.json'

/** Reads members, checks each, and sends them in chunks (`eachChecked`). Each chunk has members of one block. */
export async function readRecords(
  reader: ArchiveReader,
  { numbers, secrets, scope }: ReadingTask,
  send: SendChunk,
): Promise<void> {
  const read = createRecordReader(reader, { secrets, scope }, send)
  if (numbers instanceof Uint32Array) return read(numbers)
  for (let block = takeBlock(numbers); block !== null; block = takeBlock(numbers)) await read(block.numbers)
}

/** Creates a reader of some members after others. */
function createRecordReader(
  reader: ArchiveReader,
  { secrets, scope }: Omit<ReadingTask, 'numbers'>,
  send: SendChunk,
): (numbers: Uint32Array) => Promise<void> {
  const checks = { search: createSecretSearch(() => secrets), scope: createOsvScope(scope) }
  const writer = createCheckedWriter(new Uint8Array(TRANSFER_BYTES), send)
  return async (numbers) => {
    await reader.readNumbered(numbers, (entry, member) => {
      const id = entry.name.slice(0, -RECORD_ENDING.length)
      return writer.add(checkMember(id, entry.crc32, member, checks))
    })
    await writer.flush()
  }
}

interface Checks {
  readonly search: SecretSearch
  readonly scope: OsvScope | null
}

function checkMember(id: string, crc32: number, member: Content | ZipFault, { search, scope }: Checks): MemberToWrite {
  if ('refused' in member) return { kind: 'refused', reason: member.refused }
  const { content, deflated } = member
  // Archive members are compressed: a reflected credential can only be found here, after inflation.
  const fault = secretIn(search, content, id)
  if (fault !== null) return { kind: 'refused', reason: fault }
  const identity = identify(content, id)
  if (typeof identity === 'string') return { kind: 'refused', reason: identity }
  const kind = scope === null || scope.includes(id, identity.record) ? 'record' : 'outside'
  const sums = { crc32, size: content.length, sha256: sha256Of(content) }
  const facts = { own: identity.modified, ...sums, fix: namesFix(content) }
  return { kind, ...facts, deflated }
}

function secretIn(search: SecretSearch, content: Buffer, id: string): string | null {
  try {
    search.check(content, id)
    return null
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return error.message
  }
}

/** Members of a block at most, and their bytes: about as many as are inflated together. Larger members are a block each. */
const MOST_MEMBERS = 256
const MOST_BYTES = 1 << 18

/** Numbers of members that two threads read, block by block. In shared memory, so that each sees which blocks the other took. */
export interface SharedBlocks {
  readonly numbers: Uint32Array
  /** Where each block ends in `numbers`. */
  readonly ends: Uint32Array
  /** How many blocks were taken. */
  readonly taken: Int32Array
}

/** Some of the members, in order. */
interface MemberBlock {
  /** The place of its first member in `numbers`. */
  readonly from: number
  readonly numbers: Uint32Array
}

/** Returns whether members have at least this number of compressed bytes together. */
export function haveBytes(directory: Pick<Directory, 'compressedSize'>, numbers: Uint32Array, least: number): boolean {
  let bytes = 0
  for (let i = 0; i < numbers.length && bytes < least; i++) bytes += directory.compressedSize(numbers[i] ?? 0)
  return bytes >= least
}

/** Divides the numbers into blocks, and copies them into shared memory. */
export function shareBlocks(
  numbers: Uint32Array,
  { offset, regionEnd }: Pick<Directory, 'offset' | 'regionEnd'>,
): SharedBlocks {
  const ends: number[] = []
  let members = 0
  let bytes = 0
  for (const [place, number] of numbers.entries()) {
    const size = regionEnd(number) - offset(number)
    if (members === MOST_MEMBERS || (members > 0 && bytes + size > MOST_BYTES)) {
      ends.push(place)
      members = 0
      bytes = 0
    }
    members++
    bytes += size
  }
  if (members > 0) ends.push(numbers.length)
  return {
    numbers: shared(numbers),
    ends: shared(ends),
    taken: new Int32Array(new SharedArrayBuffer(4)),
  }
}

function shared(numbers: ArrayLike<number>): Uint32Array {
  const copy = new Uint32Array(new SharedArrayBuffer(numbers.length * 4))
  copy.set(numbers)
  return copy
}

/** Takes the next block that no thread has taken; null: there is none. */
export function takeBlock(blocks: SharedBlocks): MemberBlock | null {
  return blockAt(blocks, Atomics.add(blocks.taken, 0, 1))
}

/** Takes the next block, unless it is one large member: null then too, and the other thread takes it. */
export function takeSmallBlock(
  blocks: SharedBlocks,
  { offset, regionEnd }: Pick<Directory, 'offset' | 'regionEnd'>,
): MemberBlock | null {
  const next = Atomics.load(blocks.taken, 0)
  const block = blockAt(blocks, next)
  const [first = 0] = block?.numbers ?? []
  if (block === null || regionEnd(first) - offset(first) > MOST_BYTES) return null
  return Atomics.compareExchange(blocks.taken, 0, next, next + 1) === next ? block : null
}

function blockAt({ numbers, ends }: SharedBlocks, index: number): MemberBlock | null {
  const end = ends[index]
  if (end === undefined) return null
  const from = index === 0 ? 0 : (ends[index - 1] ?? 0)
  return { from, numbers: numbers.subarray(from, end) }
}

/** A task of which both threads do a part. */
type SharedTask = ReadingTask & { readonly numbers: SharedBlocks }

/**
 * Uses the members that the thread reads, in order, and reads blocks itself while it would wait for the thread: which of the two
 * has more to do depends on the machine. One block at most is read ahead here, and no large member.
 */
export async function shareReading(
  thread: Pick<ChunkThread, 'begin' | 'stop'>,
  reader: ArchiveReader,
  task: SharedTask,
  use: (chunk: Uint8Array) => number,
): Promise<void> {
  try {
    const chunks = thread.begin(task)
    const own = createOwnBlocks(reader, task)
    const { length } = task.numbers.numbers
    for (let taken = 0; taken < length;) {
      if (own.has(taken)) taken += own.use(use)
      else if (chunks.waiting() === 0 && (await own.readNext())) continue
      else {
        const chunk = await chunks.next()
        if (chunk === null) throw new Error('the thread ended before its work did')
        taken += use(chunk)
        chunks.free(chunk)
      }
    }
  } finally {
    await thread.stop()
  }
}

/** The block that this thread reads itself. */
function createOwnBlocks(reader: ArchiveReader, task: SharedTask) {
  let block: MemberBlock | null = null
  let filled: Chunk[] = []
  const read = createRecordReader(reader, task, (chunk) => {
    filled.push(chunk)
    return Promise.resolve(new Uint8Array(TRANSFER_BYTES))
  })
  return {
    /** Whether the member at this place is in the block that was read. */
    has: (place: number): boolean => block?.from === place,
    /** Reads the next block; false: one that was read is not used yet, or none is left that is to be read here. */
    async readNext(): Promise<boolean> {
      if (block !== null) return false
      block = takeSmallBlock(task.numbers, reader.directory)
      if (block !== null) await read(block.numbers)
      return block !== null
    },
    /** Passes its members on and forgets them; returns how many there are. */
    use(pass: (chunk: Uint8Array) => number): number {
      const count = filled.reduce((sum, chunk) => sum + pass(chunk), 0)
      for (const chunk of filled) freeBytes(chunk)
      filled = []
      block = null
      return count
    },
  }
}
