import type { MirrorError } from '../../../base/errors.ts'
import { isTransient } from '../../../upstream/http/errors.ts'
import type { Task } from './plan.ts'

/** Consecutive failures (after retries) after which a host is considered down. */
const MAX_CONSECUTIVE_FAILURES = 10

/**
 * Counts consecutive failures per host, artifact requests separately, so that a host that is down is not asked for
 * every answer.
 */
export type HostFailures = ReturnType<typeof createHostFailures>

/** Creates counters that start at zero. */
export function createHostFailures() {
  const failures = new Map<string, number>()
  const last = new Map<string, string>()
  const hostOf = ({ surface, document }: Task): string => (document === null ? surface : `${surface} documents`)
  return {
    recordSuccess: (task: Task): void => void failures.delete(hostOf(task)),
    recordFailure(task: Task, error: MirrorError): void {
      failures.set(hostOf(task), isTransient(error) ? (failures.get(hostOf(task)) ?? 0) + 1 : 0)
      last.set(hostOf(task), error.message)
    },
    /** Returns the reason to skip a task because its host is down; null when it is to be requested. */
    skipReason(task: Task): string | null {
      if ((failures.get(hostOf(task)) ?? 0) < MAX_CONSECUTIVE_FAILURES) return null
      return `skipped after ${MAX_CONSECUTIVE_FAILURES} consecutive failures of the host, the last one: ${last.get(hostOf(task)) ?? ''}`
    },
  }
}
