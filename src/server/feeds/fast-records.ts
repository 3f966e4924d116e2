import type { EventEmitter } from 'node:events'
import { type FastPath, type FastPathOptions, openFastPath } from '../http/fast-path.ts'
import { type Heads, type JsonResponse, answerText, dated } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { createInflating } from './inflating.ts'
import { findPacked } from './osv.ts'

/** What records are served from. */
export type ServedRecords = Pick<ServedSnapshot, 'cache' | 'reads' | 'originOf' | 'knownOrigin'>

/** Opens the fast path for records. */
export function openFastRecords(
  server: EventEmitter,
  served: ServedRecords,
  heads: Heads,
  options: Omit<FastPathOptions, 'find'>,
): FastPath {
  const inflating = createInflating()
  return openFastPath(server, {
    ...options,
    find(target, coding) {
      const origin = served.originOf('osv')
      const shared = heads(origin, coding)
      const found = findPacked(served, target, coding)
      if (found === undefined || found.asOf !== undefined) return undefined // its head is its own
      const ready = (answer: JsonResponse) => ({
        head: answerText(dated(answer, origin), shared),
        body: answer.body,
      })
      if (!('member' in found)) return ready(found)
      const content = inflating(target, found.member, found.size)
      return () => ready(found.known() ?? found.answer(content()))
    },
  })
}
