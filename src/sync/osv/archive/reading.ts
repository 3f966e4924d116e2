import { freeBytes } from '../../../base/free-bytes.ts'
import { type Chunk, type ChunkThread, TRANSFER_BYTES, startChunks } from '../../../base/threads/chunks.ts'
import { workerFile } from '../../../base/threads/worker-file.ts'
import type { Directory, MemberName } from '../../../archive/zip/directory.ts'
import type { SyncContext } from '../../context.ts'
import { scopeSettings } from '../scope.ts'
import type { UpstreamArchive } from '../upstream-archive.ts'
import { type CheckedMember, eachChecked } from './checked.ts'
import type { MembersStart } from './members.worker.ts'
import {
  type MemberBlock,
  RECORD_ENDING,
  type ReadingTask,
  type SharedBlocks,
  createRecordReader,
  readRecords,
  shareBlocks,
  takeSmallBlock,
} from './read-members.ts'
import type { ArchiveReader } from '../../../archive/zip/reader.ts'

/** The members to read of an archive, in this order. */
export interface Selection {
  /** Of their ids in the index. */
  readonly ordinals: Uint32Array
  /** Of the members in the archive's directory; lost when they are read. */
  readonly numbers: Uint32Array<ArrayBuffer>
}

/** Compressed bytes to read from which a thread of its own is worth its start. */
const THREAD_FROM = 2 << 20
/** Members of an archive that is read by two threads: the directory that both have takes 8 bytes for each. */
const MOST_SHARED = 1 << 20
/** The thread creates much garbage that lives shortly: a small young generation keeps its memory small. */
const LIMITS = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 }

/** An archive of which members will be read. */
export interface ArchiveReading {
  /**
   * Reads and checks the selected members, and calls `take` with each, in order; its buffers are valid during the call. Much of
   * a downloaded archive is read in a thread of its own, so that the caller can write at the same time, and here while the caller would
   * wait; one with very many members is closed here, and read by the thread alone.
   */
  read(selection: Selection, take: (member: CheckedMember) => void): Promise<void>
  /** Ends the thread, if there is one. */
  stop(): Promise<void>
}

/** Prepares to read an archive. The thread of one that is read as a whole starts now, while the caller selects. */
export function prepareReading(
  { config, session }: SyncContext,
  { reader, path, close }: UpstreamArchive,
  isWhole: boolean,
): ArchiveReading {
  const start = (file: string): ChunkThread => {
    const data: MembersStart = { path: file, maxMemberBytes: config.upstream.maxRecordBytes }
    return startChunks({
      file: workerFile('members.worker', import.meta.url),
      data,
      limits: LIMITS,
    })
  }
  let thread = isWhole && path !== null && reader.size >= THREAD_FROM ? start(path) : null
  return {
    async read({ numbers }, take) {
      const scope = scopeSettings(config)
      const checks = { secrets: session.secrets.list(), scope }
      const use = (chunk: Uint8Array): number => {
        session.signal.throwIfAborted()
        return eachChecked(chunk, take)
      }
      if (path !== null && isMuch(reader.directory, numbers)) thread ??= start(path)
      if (thread !== null && numbers.length <= MOST_SHARED) {
        const blocks = shareBlocks(numbers, reader.directory)
        freeBytes(numbers)
        return shareReading(thread, reader, { numbers: blocks, ...checks }, use)
      }
      if (thread !== null) {
        await close() // its directory is large, and the thread has its own
        return thread.consume({ numbers, ...checks } satisfies ReadingTask, use, [numbers.buffer])
      }
      await readRecords(reader, { numbers, ...checks }, (chunk) => {
        use(chunk)
        return Promise.resolve(new Uint8Array(chunk.buffer))
      })
    },
    stop: async () => thread?.stop(),
  }
}

function isMuch(directory: Directory, numbers: Uint32Array): boolean {
  let bytes = 0
  for (let i = 0; i < numbers.length && bytes < THREAD_FROM; i++) bytes += directory.compressedSize(numbers[i] ?? 0)
  return bytes >= THREAD_FROM
}

const ENDING = Buffer.from(RECORD_ENDING)

/**
 * Returns where the id of the record that a member should have ends in the bytes of the member's name; null: it is not the name of
 * a record.
 */
export function endOfId({ bytes, from, to }: MemberName): number | null {
  const end = to - ENDING.length
  return end >= from && bytes.compare(ENDING, 0, ENDING.length, end, to) === 0 ? end : null
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
