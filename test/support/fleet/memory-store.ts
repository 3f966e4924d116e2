import { Readable } from 'node:stream'
import { readFileSync } from 'node:fs'
import { sha256Hex } from '../../../src/base/digest.ts'
import {
  type ObjectBody,
  type ObjectInfo,
  type ObjectStore,
  FleetError,
  OversizedError,
  checkKey,
} from '../../../src/features/fleet/objects/object-store.ts'

/** The seven calls of an object store. */
export type StoreVerb = 'get' | 'head' | 'put' | 'putIfAbsent' | 'putIfMatch' | 'list' | 'delete'

/** One call, before it is carried out. */
export interface StoreCall {
  readonly verb: StoreVerb
  /** The key, or the prefix of a list. */
  readonly key: string
  /** Calls of this client so far, this one included. */
  readonly count: number
}

/**
 * What goes wrong with a call:
 * `lost-request`: it never arrives (outcome unknown); `lost-answer`: it takes effect, but the answer is lost (outcome unknown);
 * `slow-down`: 503 SlowDown, nothing is written (refused); `conflict`: 409 instead of 412, nothing is written (refused);
 * `down`: no connection (outcome unknown); `stale`: a read sees the content before the last write of that key;
 * `half`: the body of a get breaks off after half of it; `{ waitFor }`: it is carried out once that is resolved.
 */
export type StoreFault =
  | 'lost-request'
  | 'lost-answer'
  | 'slow-down'
  | 'conflict'
  | 'down'
  | 'stale'
  | 'half'
  | { readonly waitFor: Promise<unknown> }

/** Decides what goes wrong with a call; it may throw for a caller that dies before the call is carried out. */
export type FaultScript = (call: StoreCall) => StoreFault | undefined

interface Stored {
  readonly bytes: Buffer
  readonly info: ObjectInfo
}

/** Options of a store in memory. */
interface MemoryOptions {
  /** The store's clock, unix ms. */
  readonly now?: () => number
}

/** A store in memory: its content, and any number of clients with faults of their own. */
export interface MemoryBucket {
  /** Creates a client; `faults` decides on each of its calls. */
  client(faults?: FaultScript): ObjectStore
  readonly keys: () => string[]
  /** Content of an object, without a client's faults. */
  readonly read: (key: string) => Buffer | null
  /** Writes, or with null removes, an object as somebody with access to the store would. */
  tamper(key: string, bytes: Buffer | null): void
  /** Copy of all objects. */
  snapshot(): ReadonlyMap<string, Stored>
  /** Sets all objects back, as a store that was restored from a backup. */
  restore(objects: ReadonlyMap<string, Stored>): void
  /** Calls of all clients so far, by verb. */
  readonly calls: Readonly<Record<StoreVerb, number>>
}

/** Creates an empty store in memory. */
export function createMemoryBucket({ now = Date.now }: MemoryOptions = {}): MemoryBucket {
  const objects = new Map<string, Stored>()
  const before = new Map<string, Stored | null>()
  const calls = { get: 0, head: 0, put: 0, putIfAbsent: 0, putIfMatch: 0, list: 0, delete: 0 }
  const write = (key: string, bytes: Buffer | null): ObjectInfo => {
    const content = bytes ?? Buffer.alloc(0)
    const etag = `"${sha256Hex(content)}"`
    const info = { key, size: content.length, etag, modifiedAt: now() }
    before.set(key, objects.get(key) ?? null)
    if (bytes === null) objects.delete(key)
    else objects.set(key, { bytes: content, info })
    return info
  }
  const inner: Inner = { objects, before, calls, write }
  return {
    client: (faults = () => undefined) => createClient(inner, faults),
    keys: () => [...objects.keys()].sort(),
    read: (key) => objects.get(key)?.bytes ?? null,
    tamper: (key, bytes) => void write(key, bytes),
    snapshot: () => new Map(objects),
    restore(copy) {
      objects.clear()
      before.clear()
      for (const [key, one] of copy) objects.set(key, one)
    },
    calls,
  }
}

/** One client of an empty store in memory of its own. */
export function createMemoryStore(faults?: FaultScript): ObjectStore {
  return createMemoryBucket().client(faults)
}

interface Inner {
  readonly objects: Map<string, Stored>
  readonly before: Map<string, Stored | null>
  readonly calls: Record<StoreVerb, number>
  readonly write: (key: string, bytes: Buffer | null) => ObjectInfo
}

/** Reads the content that a write stores, and its digest where one is claimed. */
function bytesOf(body: ObjectBody): Buffer {
  if (Buffer.isBuffer(body)) return Buffer.from(body)
  const bytes = readFileSync(body.file)
  if (bytes.length !== body.size || sha256Hex(bytes) !== body.sha256)
    throw new FleetError('refused', `${body.file} is not the file that was to be stored`)
  return bytes
}

function createClient({ objects, before, calls, write }: Inner, faults: FaultScript): ObjectStore {
  let count = 0
  /** Carries out a call with its fault. */
  const call = async <T>(verb: StoreVerb, key: string, act: (fault: StoreFault | undefined) => T): Promise<T> => {
    if (verb !== 'list') checkKey(key)
    calls[verb]++
    const fault = faults({ verb, key, count: ++count })
    if (typeof fault === 'object') await fault.waitFor
    const name = `${verb} ${key}`
    if (fault === 'slow-down') throw new FleetError('refused', `${name}: 503 SlowDown`, { isPassing: true })
    if (fault === 'conflict') throw new FleetError('refused', `${name}: 409 conflict`, { isPassing: true })
    if (fault === 'down') throw new FleetError('unknown', `${name}: connect ECONNREFUSED`)
    if (fault === 'lost-request') throw new FleetError('unknown', `${name}: no answer`)
    const result = act(fault)
    if (fault === 'lost-answer') throw new FleetError('unknown', `${name}: no answer`)
    return result
  }
  const find = (key: string, fault: StoreFault | undefined): Stored | null =>
    (fault === 'stale' ? before.get(key) : objects.get(key)) ?? null
  return {
    url: 'memory://',
    get: (key, { from = 0, maxBytes = Infinity } = {}) =>
      call('get', key, (fault) => {
        const found = find(key, fault)
        if (found === null) return null
        const rest = found.bytes.subarray(from)
        if (rest.length > maxBytes) throw new OversizedError(key, rest.length, maxBytes)
        return { info: found.info, body: bodyOf(rest, fault === 'half') }
      }),
    head: (key) => call('head', key, (fault) => find(key, fault)?.info ?? null),
    put: (key, body) => call('put', key, () => write(key, bytesOf(body))),
    putIfAbsent: (key, body) => call('putIfAbsent', key, () => (objects.has(key) ? null : write(key, bytesOf(body)))),
    putIfMatch: (key, body, etag) =>
      call('putIfMatch', key, () => (objects.get(key)?.info.etag === etag ? write(key, bytesOf(body)) : null)),
    async *list(prefix) {
      const infos = [...objects.values()].map(({ info }) => info)
      yield* await call('list', prefix, () => infos.filter(({ key }) => key.startsWith(prefix)))
    },
    delete: (key) =>
      call('delete', key, () => {
        if (objects.has(key)) write(key, null)
      }),
    close: () => undefined,
  }
}

function bodyOf(bytes: Buffer, half: boolean): Readable {
  return Readable.from(
    (function* () {
      if (bytes.length > 0) yield half ? bytes.subarray(0, bytes.length >> 1) : bytes
      if (half) throw new FleetError('unknown', 'the connection broke off within the body')
    })(),
    { objectMode: false },
  )
}
