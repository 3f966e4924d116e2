import type { Readable } from 'node:stream'
import { type ObjectBody, type ObjectStore, FleetError } from './object-store.ts'

/** The calls of an object store, as the metrics name them. */
const VERBS = ['get', 'head', 'put', 'put_if_absent', 'put_if_match', 'list', 'delete'] as const
type Verb = (typeof VERBS)[number]

/**
 * How a call ended: `ok`; `none`: no such object, or the condition of a write did not hold; `refused` and `unknown` as of
 * `FleetError`. `retried` counts attempts after the first within a call.
 */
type CallOutcome = 'ok' | 'none' | 'refused' | 'unknown' | 'retried'

/** Calls and bytes of a store since its start; a plain object that a thread can send to another. */
export interface StoreCounters {
  readonly requests: Record<Verb, Record<CallOutcome, number>>
  /** Bytes of objects. */
  readonly bytes: { up: number; down: number }
}

/** Creates counters at zero. */
export function createStoreCounters(): StoreCounters {
  const zeros = () => ({ ok: 0, none: 0, refused: 0, unknown: 0, retried: 0 })
  const verbs = VERBS.map((verb) => [verb, zeros()] as const)
  return {
    requests: Object.fromEntries(verbs) as StoreCounters['requests'],
    bytes: { up: 0, down: 0 },
  }
}

/** The same store, whose calls are counted. */
export function countCalls(store: ObjectStore, { requests, bytes }: StoreCounters): ObjectStore {
  const counted = async <T>(verb: Verb, call: Promise<T>): Promise<T> => {
    try {
      const result = await call
      requests[verb][result === null ? 'none' : 'ok']++
      return result
    } catch (error) {
      requests[verb][error instanceof FleetError ? error.outcome : 'unknown']++
      throw error
    }
  }
  const written = async <T>(verb: Verb, body: ObjectBody, call: Promise<T>): Promise<T> => {
    const result = await counted(verb, call)
    if (result !== null) bytes.up += Buffer.isBuffer(body) ? body.length : body.size
    return result
  }
  const count = (body: Readable): Readable =>
    body.on('data', (piece: Buffer) => void (bytes.down += piece.length)).pause()
  return {
    url: store.url,
    async get(key, options) {
      const found = await counted('get', store.get(key, options))
      return found === null ? null : { info: found.info, body: count(found.body) }
    },
    head: (key) => counted('head', store.head(key)),
    put: (key, body) => written('put', body, store.put(key, body)),
    putIfAbsent: (key, body) => written('put_if_absent', body, store.putIfAbsent(key, body)),
    putIfMatch: (key, body, etag) => written('put_if_match', body, store.putIfMatch(key, body, etag)),
    async *list(prefix) {
      try {
        yield* store.list(prefix)
        requests.list.ok++
      } catch (error) {
        requests.list[error instanceof FleetError ? error.outcome : 'unknown']++
        throw error
      }
    },
    delete: (key) => counted('delete', store.delete(key)),
    close: () => store.close(),
  }
}
