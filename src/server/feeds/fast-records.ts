import type { EventEmitter } from 'node:events'
import { type FastPath, type FastPathOptions, openFastPath } from '../http/fast-path.ts'
import { type Heads, answerText, dated } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { findRecord } from './osv.ts'

/** What records are served from. */
export type ServedRecords = Pick<ServedSnapshot, 'cache' | 'reads' | 'originOf'>

/** Opens the fast path for records. */
export function openFastRecords(
  server: EventEmitter,
  served: ServedRecords,
  heads: Heads,
  options: Omit<FastPathOptions, 'find'>,
): FastPath {
  return openFastPath(server, {
    ...options,
    find(target, coding) {
      const origin = served.originOf('osv')
      const answer = findRecord(served, target, coding)
      if (answer === undefined || answer.asOf !== undefined) return undefined // its head is its own
      return { head: answerText(dated(answer, origin), heads(origin, coding)), body: answer.body }
    },
  })
}
