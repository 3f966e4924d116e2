import { produceChunks } from '../../../base/threads/chunks.ts'
import { openArchive } from '../../../archive/zip/reader.ts'
import { type ReadingTask, readRecords } from './read-members.ts'

/** What the thread that reads an archive is started with; its task is a `ReadingTask`. */
export interface MembersStart {
  readonly path: string
  readonly maxMemberBytes: number
}

produceChunks(async (data, send, task) => {
  const { path, maxMemberBytes } = data as MembersStart
  const archive = await openArchive(path, { maxMemberBytes })
  try {
    await readRecords(archive, (await task) as ReadingTask, send)
  } finally {
    await archive.close()
  }
})
