import { produceChunks } from '../../../threads/chunks.ts'
import { openArchive } from '../../../zip/reader.ts'
import { type ReadingTask, readRecords } from './read-members.ts'

/** What the thread that reads an archive is started with. */
export interface MembersStart {
  readonly path: string
  readonly maxMemberBytes: number
  readonly task: ReadingTask
}

produceChunks(async (data, send) => {
  const { path, maxMemberBytes, task } = data as MembersStart
  const archive = await openArchive(path, { maxMemberBytes })
  try {
    await readRecords(archive, task, send)
  } finally {
    await archive.close()
  }
})
