import type { IncomingHttpHeaders } from 'node:http'
import { type PathPattern, matches } from './faults/schedule.ts'

/** One request as it came and what was made of it. */
export interface LoggedRequest {
  method: string
  /** As sent, still percent-encoded, without the query. */
  path: string
  query: Record<string, string>
  headers: IncomingHttpHeaders
  /** 0 until a status line was sent. */
  status: number
  /** Body bytes written so far. */
  bytes: number
  /** Which of the sandbox's addresses it came in at. */
  host: 'api' | 'catalog' | 'artifacts' | 'identity'
}

/** The requests the sandbox got, oldest first, without its own control requests. */
export interface RequestLog extends Iterable<LoggedRequest> {
  readonly entries: readonly LoggedRequest[]
  clear(): void
  /** Requests since the last clear, also those the bound has dropped, when no pattern is given. */
  count(pattern?: PathPattern, method?: string): number
}

/** Keeps the newest `bound` requests. */
export function createRequestLog(bound = 20_000): RequestLog & { add(entry: LoggedRequest): void } {
  let entries: LoggedRequest[] = []
  let total = 0
  return {
    get entries() {
      return entries.slice(-bound)
    },
    [Symbol.iterator]: () => entries.slice(-bound)[Symbol.iterator](),
    add(entry) {
      total++
      if (entries.length >= 2 * bound) entries = entries.slice(-bound)
      entries.push(entry)
    },
    clear() {
      entries = []
      total = 0
    },
    count(pattern, method) {
      if (pattern === undefined && method === undefined) return total
      const counted = entries.slice(-bound).filter((entry) => {
        if (method !== undefined && entry.method !== method) return false
        return pattern === undefined || matches(pattern, entry.path)
      })
      return counted.length
    },
  }
}
