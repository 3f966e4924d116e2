import { freeBytes } from '../../../base/free-bytes.ts'
import { type Chunk, type ChunkThread, TRANSFER_BYTES } from '../../../base/threads/chunks.ts'
import type { ArchiveReader } from '../../../archive/zip/reader.ts'
import { type MemberBlock, type SharedBlocks, takeSmallBlock } from './blocks.ts'
import { type ReadingTask, createRecordReader } from './read-members.ts'

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
