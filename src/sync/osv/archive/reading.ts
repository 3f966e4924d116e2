import { consumeChunks } from '../../../threads/chunks.ts'
import { workerFile } from '../../../threads/worker-file.ts'
import type { Directory, ZipEntry } from '../../../zip/directory.ts'
import type { SyncContext } from '../../context.ts'
import { scopeSettings } from '../scope/scope.ts'
import type { UpstreamArchive } from '../upstream-archive.ts'
import { type CheckedMember, eachChecked } from './checked.ts'
import type { MembersStart } from './members.worker.ts'
import { RECORD_ENDING, type ReadingTask, readRecords } from './read-members.ts'

/** The members to read of an archive, in this order. */
export interface Selection {
  /** Of their ids in the index. */
  readonly ordinals: Uint32Array
  /** Of the members in the archive's directory. */
  readonly numbers: Uint32Array
}

/** Compressed bytes to read from which a thread of its own is worth its start. */
const THREAD_FROM = 2 << 20
/** The thread creates much garbage that lives shortly: a small young generation keeps its memory small. */
const LIMITS = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 }

/**
 * Reads and checks the selected members, and calls `take` with each, in order; its buffers are valid during the call. Much of
 * a downloaded archive is read in a thread of its own, so that the caller can write at the same time; it is closed here then.
 */
export async function readArchive(
  { config, session }: SyncContext,
  { reader, path, close }: UpstreamArchive,
  { numbers }: Selection,
  take: (member: CheckedMember) => void,
): Promise<void> {
  const task: ReadingTask = {
    numbers,
    secrets: session.secrets.list(),
    scope: scopeSettings(config),
  }
  const use = (chunk: Uint8Array): void => {
    session.signal.throwIfAborted()
    eachChecked(chunk, take)
  }
  if (path !== null && isMuch(reader.directory, numbers)) {
    await close() // its directory is large, and the thread opens it again
    const maxMemberBytes = config.upstream.maxRecordBytes
    const data: MembersStart = { path, maxMemberBytes, task }
    const file = workerFile('members.worker', import.meta.url)
    return consumeChunks({ file, data, limits: LIMITS }, use)
  }
  await readRecords(reader, task, (chunk) => {
    use(chunk)
    return Promise.resolve(new Uint8Array(chunk.buffer))
  })
}

function isMuch(directory: Directory, numbers: Uint32Array): boolean {
  let bytes = 0
  for (let i = 0; i < numbers.length && bytes < THREAD_FROM; i++)
    bytes += directory.compressedSize(numbers[i] ?? 0)
  return bytes >= THREAD_FROM
}

/** Returns the id of the record that a member should have; null: its name is not that of a record. */
export function recordIdOf({ name }: ZipEntry): string | null {
  return name.endsWith(RECORD_ENDING) ? name.slice(0, -RECORD_ENDING.length) : null
}
