import type { ExportTask, ExportTaskReport } from './export/export.worker.ts'
import type { OnProgress } from '../domain/progress.ts'
import { workerFile, runTask } from '../threads/task.ts'
import type { ImportOutcome, ImportTask } from './import/import.worker.ts'

/** `exportBundle` in a thread of its own. */
export function exportInThread(
  task: ExportTask,
  onProgress: OnProgress,
): Promise<ExportTaskReport> {
  return runTask(workerFile('export/export.worker', import.meta.url), task, onProgress)
}

/**
 * Opens and applies a bundle (`applyBundle`) in a thread of its own: the caller's goes on serving, and memory stays small.
 * Throws as that does, except for a bundle that does not go with what is held.
 */
export function importInThread(task: ImportTask, onProgress: OnProgress): Promise<ImportOutcome> {
  return runTask(workerFile('import/import.worker', import.meta.url), task, onProgress)
}
