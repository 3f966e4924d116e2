import { type ExportOptions, type ExportReport, exportBundle } from './export.ts'
import { readSigningKeys } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { answerTask } from '../../../base/threads/task.ts'

/** An export as passed to a thread: keys by their files. */
export type ExportTask = Omit<ExportOptions, 'keys' | 'now' | 'onProgress'> & {
  readonly keyFiles: readonly string[]
}

/** The report from the thread: only the number of members. */
export type ExportTaskReport = Omit<ExportReport, 'manifest'> & {
  readonly manifest: Omit<Manifest, 'members'>
  readonly members: number
}

answerTask(async (data, onProgress): Promise<ExportTaskReport> => {
  const { keyFiles, ...task } = data as ExportTask
  // A buffer arrives as a plain array of bytes.
  const need = task.need === null ? null : Buffer.from(task.need)
  const keys = readSigningKeys(keyFiles)
  const report = await exportBundle({ ...task, need, keys, now: Date.now, onProgress })
  const { members, ...manifest } = report.manifest
  return { ...report, manifest, members: members.length }
})
