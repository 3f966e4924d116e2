/**
 * Runs tasks, at most `width` at the same time. When a task throws, no further one is started, the running ones are
 * completed, and the first error is thrown.
 */
export async function runPool<T>(
  tasks: readonly T[],
  width: number,
  work: (task: T, done: number) => Promise<void>,
): Promise<void> {
  let next = 0
  let done = 0
  let failed: { error: unknown } | null = null
  const worker = async (): Promise<void> => {
    while (next < tasks.length && failed === null) {
      const task = tasks[next++] as T // below the length
      try {
        await work(task, done)
        done++
      } catch (error) {
        failed ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, worker))
  // The workers set it, which the compiler does not follow.
  const first = failed as { error: unknown } | null
  if (first !== null) throw first.error
}
