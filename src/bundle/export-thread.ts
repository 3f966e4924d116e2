import type { ExportTask, ExportTaskReport } from './export-worker.ts'
import type { OnProgress } from './progress.ts'
import { workerFile, runTask } from './task.ts'

/** `exportBundle` in a thread of its own. */
export function exportInThread(
  task: ExportTask,
  onProgress: OnProgress,
): Promise<ExportTaskReport> {
  return runTask(workerFile('export-worker', import.meta.url), task, onProgress)
}
