import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../access/access.ts'
import { sendChanges } from './changes.ts'
import { type EventLog, createSnapshotLog } from './event-log.ts'
import { type Events, type EventsOptions, createEvents } from './events.ts'
import { type Failures, methodNotAllowed, sendProblem } from '../http/problems.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { sendRecordDates } from './record.ts'
import { CHANGES, EVENTS_PATH, RECORDS } from '../http/paths.ts'
import { rawTarget } from '../http/request-target.ts'

/** Bounds of the stream of events; the defaults when not given. */
export type EventBounds = Pick<EventsOptions, 'heartbeatMs' | 'maxListeners'>

/** What the pages for followers are made from. */
export interface FollowerOptions {
  readonly served: Pick<ServedSnapshot, 'reads'>
  readonly access: Access
  readonly failures: Failures
  /** Events that were received and passed on; null: no webhooks here. */
  readonly webhooks: EventLog | null
  readonly bounds: EventBounds
  /** Unix milliseconds. */
  readonly now: () => number
  /** Called with the last served entry of the change log, at first and whenever it changes. */
  readonly onServed: (log: number) => void
}

/** The pages for those who follow the mirror: `/-/changes`, `/-/events` and `/-/records/{id}`. */
interface FollowerRoutes extends Pick<Events, 'look' | 'close'> {
  /** Answers a request for one of them; false when it is for another path. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

/** Creates the routes. They report the served snapshot only, so every reported change is already readable. */
export function createFollowerRoutes(options: FollowerOptions): FollowerRoutes {
  const { served, access, failures, webhooks, bounds, now, onServed } = options
  const { reads } = served
  const snapshots = createSnapshotLog(reads.changes)
  const events = createEvents({ ...bounds, snapshots, webhooks, access })
  let lastServed = -1
  return {
    look() {
      events.look()
      const last = snapshots.last()
      if (last !== lastServed) onServed(last)
      lastServed = last
    },
    close: () => events.close(),
    answer(request, response) {
      const { path, query } = rawTarget(request.url ?? '')
      const isRecord = path.startsWith(RECORDS) && path !== RECORDS
      if (path !== CHANGES && path !== EVENTS_PATH && !isRecord) return false
      const { method = '' } = request
      try {
        const parameters = new URLSearchParams(query)
        if (method !== 'GET' && method !== 'HEAD')
          sendProblem(request, response, methodNotAllowed(method))
        else if (isRecord) sendRecordDates(reads, request, response)
        else if (path === EVENTS_PATH) events.open(request, response, parameters)
        else sendChanges({ reads, access, now }, request, response, parameters)
      } catch (error) {
        failures.answer(error, request, response)
      }
      return true
    },
  }
}
