import type { EventEmitter } from 'node:events'
import { type FastPath, type FastPathOptions, openFastPath } from '../http/fast-path.ts'
import { type Heads, type JsonResponse, answerText } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { createInflating } from './inflating.ts'
import { findPacked } from './osv.ts'

/** What records are served from, by the main thread and by others. */
export type ServedRecords = Pick<ServedSnapshot, 'cache' | 'reads' | 'originOf' | 'knownOrigin'>

/** Opens the fast path for records. */
export function openFastRecords(
  server: EventEmitter,
  served: ServedRecords,
  heads: Heads,
  options: Omit<FastPathOptions, 'find'> & Catching,
): FastPath {
  const { isBehind, refresh } = options
  const inflating = createInflating()
  return openFastPath(server, {
    ...options,
    find(target, coding) {
      if (isBehind()) refresh()
      const shared = heads(served.originOf('osv'), coding)
      const found = findPacked(served, target, coding)
      if (found === undefined || found.asOf !== undefined) return undefined // its head is its own
      const ready = (answer: JsonResponse) => ({
        head: answerText(answer, shared),
        body: answer.body,
      })
      if (!('member' in found)) return ready(found)
      const content = inflating(target, found.member, found.size)
      return () => ready(found.known() ?? found.answer(content()))
    },
  })
}

/** How the served snapshot is kept from being older than another thread's. */
interface Catching {
  /** True: call `refresh` before the next answer. */
  readonly isBehind: () => boolean
  readonly refresh: () => void
}
