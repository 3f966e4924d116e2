import { dirname, resolve } from 'node:path'
import type { ExportTask, ExportTaskReport } from './export/export.worker.ts'
import type { OnProgress } from '../../base/domain/progress.ts'
import { makeTemporary } from '../../store/temporary.ts'
import { startTask } from '../../base/threads/task.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { ImportOutcome, ImportTask } from './import/import.worker.ts'

/** Small young generation: the buffers of a bundle are garbage at once, and a large one would only raise peak memory. */
const LIMITS = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 }

/** Runs `exportBundle` in a thread of its own. What is not complete goes with this process: signals reach this thread alone. */
export async function exportInThread(task: ExportTask, onProgress: OnProgress): Promise<ExportTaskReport> {
  const file = workerFile('export/export.worker', import.meta.url)
  const temporary = makeTemporary(dirname(resolve(task.path)))
  try {
    const data = { ...task, staging: temporary.folder }
    return await startTask<ExportTaskReport>({ file, data, limits: LIMITS }, onProgress).result
  } finally {
    temporary.remove()
  }
}

/**
 * Opens and applies a bundle (`applyBundle`) in a thread of its own: the caller's thread keeps serving, and memory stays
 * small. Throws as that does, except for a bundle that cannot be applied to the stored data.
 */
export function importInThread(task: ImportTask, onProgress: OnProgress): Promise<ImportOutcome> {
  const file = workerFile('import/import.worker', import.meta.url)
  return startTask<ImportOutcome>({ file, data: task, limits: LIMITS }, onProgress).result
}
