import { answerTask } from '../../base/threads/task.ts'
import { lowerPriority } from '../../base/threads/worker-file.ts'
import { type RegistryReport, type RegistryTask, performRegistryCheck } from './task.ts'

answerTask(async (data): Promise<RegistryReport | null> => {
  lowerPriority(15)
  return performRegistryCheck(data as RegistryTask)
})
