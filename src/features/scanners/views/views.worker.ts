import { answerTask } from '../../../base/threads/task.ts'
import { lowerPriority } from '../../../base/threads/worker-file.ts'
import { type ViewsReport, type ViewsTask, performTask } from './task.ts'

answerTask(async (data): Promise<ViewsReport> => {
  lowerPriority(15)
  return performTask(data as ViewsTask)
})
