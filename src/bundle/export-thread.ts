import type { ExportTask, ExportTaskReport } from './export-worker.ts'
import type { OnProgress } from './progress.ts'
import { besideModule, runTask } from './task.ts'

/** `exportBundle` in a thread of its own. */
export function exportInThread(
  task: ExportTask,
  onProgress: OnProgress,
): Promise<ExportTaskReport> {
  return runTask(besideModule('export-worker', import.meta.url), task, onProgress)
}
