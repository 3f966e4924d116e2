import type { EventEmitter } from 'node:events'
import { type FastPath, type FastPathOptions, openFastPath } from '../http/fast-path.ts'
import { type Heads, answerText } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { findRecord } from './osv.ts'

/** What records are served from, by the main thread and by others. */
export type ServedRecords = Pick<ServedSnapshot, 'cache' | 'reads' | 'originOf'>

/** Opens the fast path for records. */
export function openFastRecords(
  server: EventEmitter,
  served: ServedRecords,
  heads: Heads,
  options: Omit<FastPathOptions, 'find'> & Catching,
): FastPath {
  const { isBehind, refresh } = options
  return openFastPath(server, {
    ...options,
    find(target, coding) {
      if (isBehind()) refresh()
      const shared = heads(served.originOf('osv'), coding)
      const answer = findRecord(served, target, coding)
      if (answer?.asOf !== undefined) return undefined // its head is its own
      return answer && { head: answerText(answer, shared), body: answer.body }
    },
  })
}

/** How the served snapshot is kept from being older than another thread's. */
interface Catching {
  /** True: call `refresh` before the next answer. */
  readonly isBehind: () => boolean
  readonly refresh: () => void
}
