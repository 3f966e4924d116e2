import type { ImportOutcome, ImportTask } from './import-worker.ts'
import type { OnProgress } from './progress.ts'
import { workerFile, runTask } from './task.ts'

/**
 * Opens and applies a bundle (`applyBundle`) in a thread of its own: the caller's goes on serving, and memory stays small.
 * Throws as that does, except for a bundle that does not go with what is held.
 */
export function importInThread(task: ImportTask, onProgress: OnProgress): Promise<ImportOutcome> {
  return runTask(workerFile('import-worker', import.meta.url), task, onProgress)
}
