import type { MirrorError } from '../../../core/errors.ts'
import { isTransient } from '../../../upstream/http/errors.ts'
import type { Task } from './plan.ts'

/** So many failures in a row, after retries, mean that the host is down, not that these answers are malformed. */
const HOPELESS = 10

/** Counts failures in a row of each host, documents apart, so that a host that is down is not asked for all it has. */
export interface Patience {
  had(task: Task): void
  lacked(task: Task, error: MirrorError): void
  /** Why the task is not worth asking for; null when it is. */
  lost(task: Task): string | null
}

/** Counts from none. */
export function createPatience(): Patience {
  const failures = new Map<string, number>()
  const last = new Map<string, string>()
  const hostOf = ({ surface, document }: Task): string =>
    document === null ? surface : `${surface} documents`
  return {
    had: (task) => void failures.delete(hostOf(task)),
    lacked(task, error) {
      failures.set(hostOf(task), isTransient(error) ? (failures.get(hostOf(task)) ?? 0) + 1 : 0)
      last.set(hostOf(task), error.message)
    },
    lost(task) {
      if ((failures.get(hostOf(task)) ?? 0) < HOPELESS) return null
      return `not asked for after ${HOPELESS} failures in a row, the last: ${last.get(hostOf(task)) ?? ''}`
    },
  }
}
