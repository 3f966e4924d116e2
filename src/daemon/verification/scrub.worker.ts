import { answerTask } from '../../base/threads/task.ts'
import { lowerPriority } from '../../base/threads/worker-file.ts'
import { FEATURES } from '../../features.ts'
import { loadDerived } from '../derived.ts'
import { type ScrubReport, type ScrubTask, performScrub } from './task.ts'

answerTask(async (data): Promise<ScrubReport> => {
  lowerPriority(19)
  return performScrub(data as ScrubTask, await loadDerived(FEATURES))
})
