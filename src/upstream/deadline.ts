/** Begins a deadline when it is first asked for. */
export type Deadline = () => AbortSignal

/**
 * Does `work` within a deadline, which begins when it is first asked for: its signal aborts with a `TimeoutError` after
 * `ms`, and with the run's reason when the run ends. Unlike those of `AbortSignal.timeout` and `AbortSignal.any` it is gone
 * with its request: those stay until their time is up, which for a crawl is tens of thousands.
 */
export async function withDeadline<T>(
  ms: number,
  run: AbortSignal,
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const end = (): void => controller.abort(run.reason)
  const late = (): void => controller.abort(new DOMException('the time is up', 'TimeoutError'))
  let timer: NodeJS.Timeout | undefined
  const begin = (): AbortSignal => {
    timer ??= setTimeout(late, ms).unref()
    return controller.signal
  }
  if (run.aborted) end()
  else run.addEventListener('abort', end, { once: true })
  try {
    return await work(begin)
  } finally {
    clearTimeout(timer)
    run.removeEventListener('abort', end)
  }
}
