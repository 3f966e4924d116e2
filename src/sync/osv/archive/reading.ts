import { type ChunkThread, startChunks } from '../../../base/threads/chunks.ts'
import { workerFile } from '../../../base/threads/worker-file.ts'
import type { MemberName } from '../../../archive/zip/directory.ts'
import type { SyncContext } from '../../context.ts'
import { scopeSettings } from '../scope.ts'
import type { UpstreamArchive } from '../upstream-archive.ts'
import { type CheckedMember, eachChecked } from './checked.ts'
import type { MembersStart } from './members.worker.ts'
import { RECORD_ENDING, type ReadingTask, haveBytes, readRecords } from './read-members.ts'

/** The members to read of an archive, in this order. */
export interface Selection {
  /** Of their ids in the index. */
  readonly ordinals: Uint32Array
  /** Of the members in the archive's directory; lost when they are read. */
  readonly numbers: Uint32Array<ArrayBuffer>
}

/** Compressed bytes to read from which a thread of its own is worth its start. */
const THREAD_FROM = 2 << 20
/** The thread creates much garbage that lives shortly: a small young generation keeps its memory small. */
const LIMITS = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 }

/** An archive of which members will be read. */
export type ArchiveReading = ReturnType<typeof prepareReading>

/** Prepares to read an archive. The thread of one that is read as a whole starts now, while the caller selects. */
export function prepareReading(
  { config, session }: SyncContext,
  { reader, path, close }: UpstreamArchive,
  isWhole: boolean,
) {
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
    /**
     * Reads and checks the selected members, and calls `take` with each, in order; its buffers are valid during the call. Much of
     * a downloaded archive is read in a thread of its own, so that the caller can write at the same time; it is closed here then.
     */
    async read({ numbers }: Selection, take: (member: CheckedMember) => void): Promise<void> {
      const scope = scopeSettings(config)
      const checks = { secrets: session.secrets.list(), scope }
      const use = (chunk: Uint8Array): number => {
        session.signal.throwIfAborted()
        return eachChecked(chunk, take)
      }
      if (path !== null && haveBytes(reader.directory, numbers, THREAD_FROM)) thread ??= start(path)
      if (thread !== null) {
        await close() // its directory is large, and the thread has its own
        return thread.consume({ numbers, ...checks } satisfies ReadingTask, use, [numbers.buffer])
      }
      await readRecords(reader, { numbers, ...checks }, (chunk) => {
        use(chunk)
        return Promise.resolve(new Uint8Array(chunk.buffer))
      })
    },
    /** Ends the thread, if there is one. */
    stop: async (): Promise<void> => thread?.stop(),
  }
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
