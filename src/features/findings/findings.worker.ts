import { answerTask } from '../../base/threads/task.ts'
import { lowerPriority } from '../../base/threads/worker-file.ts'
import { type FindingsReport, type FindingsTask, performFindings } from './task.ts'

answerTask(async (data): Promise<FindingsReport | null> => {
  lowerPriority(15)
  return performFindings(data as FindingsTask)
})
