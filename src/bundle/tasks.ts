import type { ExportTask, ExportTaskReport } from './export/export.worker.ts'
import type { OnProgress } from '../domain/progress.ts'
import { startTask } from '../threads/task.ts'
import { workerFile } from '../threads/worker-file.ts'
import type { ImportOutcome, ImportTask } from './import/import.worker.ts'

/** Small young generation: the buffers of a bundle are garbage at once, and a large one would only raise peak memory. */
const LIMITS = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 }

/** Runs `exportBundle` in a thread of its own. */
export function exportInThread(
  task: ExportTask,
  onProgress: OnProgress,
): Promise<ExportTaskReport> {
  const file = workerFile('export/export.worker', import.meta.url)
  return startTask<ExportTaskReport>({ file, data: task, limits: LIMITS }, onProgress).result
}

/**
 * Opens and applies a bundle (`applyBundle`) in a thread of its own: the caller's thread keeps serving, and memory stays
 * small. Throws as that does, except for a bundle that cannot be applied to the stored data.
 */
export function importInThread(task: ImportTask, onProgress: OnProgress): Promise<ImportOutcome> {
  const file = workerFile('import/import.worker', import.meta.url)
  return startTask<ImportOutcome>({ file, data: task, limits: LIMITS }, onProgress).result
}
