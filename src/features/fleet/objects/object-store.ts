import type { Readable } from 'node:stream'
import { MirrorError } from '../../../base/errors.ts'

/** What a store says of an object. */
export interface ObjectInfo {
  readonly key: string
  /** Bytes of the whole object. */
  readonly size: number
  /** The store's name for this content, opaque: it is only compared, and given to `putIfMatch`. */
  readonly etag: string
  /** Unix ms, by the store's clock. */
  readonly modifiedAt: number
}

/** Content to store: bytes, or a file that does not change until the call ends. */
export type ObjectBody = Buffer | { readonly file: string; readonly size: number; readonly sha256: string }

/** How much of an object to read. */
export interface GetOptions {
  /** First byte, 0 without it; at the object's end or behind it, the body is empty. */
  readonly from?: number
  /** The most bytes from there on that are accepted; an object with more is refused before its body is read. */
  readonly maxBytes?: number
}

/**
 * A place for objects with conditional writes, shared by all mirrors of a fleet. Keys are names of letters, digits, `.`, `_`
 * and `-`, separated by `/`. What was written is seen by every later read. A call that fails throws `FleetError`.
 */
export interface ObjectStore {
  /** Its URL as the operator wrote it; it contains no secret. */
  readonly url: string
  /** Returns an object, its body to be read to the end or destroyed; null: no such object. A body that breaks off errs. */
  get(key: string, options?: GetOptions): Promise<{ info: ObjectInfo; body: Readable } | null>
  /** Returns what is known of an object; null: no such object. */
  head(key: string): Promise<ObjectInfo | null>
  /** Writes an object, or replaces it. */
  put(key: string, body: ObjectBody): Promise<ObjectInfo>
  /** Writes an object that does not exist yet; null: there is one with this key. */
  putIfAbsent(key: string, body: ObjectBody): Promise<ObjectInfo | null>
  /** Replaces an object; null: it has another etag, or does not exist. */
  putIfMatch(key: string, body: ObjectBody, etag: string): Promise<ObjectInfo | null>
  /** Lists the objects whose keys begin with `prefix`, in no order. */
  list(prefix: string): AsyncGenerator<ObjectInfo>
  /** Removes an object; one that does not exist is no error. */
  delete(key: string): Promise<void>
  /** Ends its connections. */
  close(): void
}

/**
 * What is known of a call that failed. `refused`: nothing was written, for certain. `unknown`: no answer came, or one that
 * does not say whether a write took effect; the caller reads the object to find out.
 */
type Outcome = 'refused' | 'unknown'

/** A failed call of an object store. */
export class FleetError extends MirrorError {
  readonly outcome: Outcome
  /** Whether a later call may succeed: no answer came, or the store was busy. It says nothing about what the store can do. */
  readonly isPassing: boolean
  constructor(
    outcome: Outcome,
    message: string,
    { isPassing = outcome === 'unknown', ...options }: { cause?: unknown; isPassing?: boolean } = {},
  ) {
    super('fleet', message, options)
    this.name = 'FleetError'
    this.outcome = outcome
    this.isPassing = isPassing
  }
}

/** An object has more bytes than are accepted; nothing of it was used. */
export class OversizedError extends FleetError {
  constructor(key: string, bytes: number, most: number) {
    super('refused', `${key} has ${bytes} bytes, more than ${most}`)
    this.name = 'OversizedError'
  }
}

/** Reads a small object as a whole; null: no such object. Refuses one of more than `maxBytes`, whatever size was announced. */
export async function readObject(
  store: ObjectStore,
  key: string,
  maxBytes: number,
): Promise<{ info: ObjectInfo; bytes: Buffer } | null> {
  const found = await store.get(key, { maxBytes })
  if (found === null) return null
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of found.body as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > maxBytes) throw new OversizedError(key, size, maxBytes)
    pieces.push(piece)
  }
  return { info: found.info, bytes: Buffer.concat(pieces) }
}

/** The longest key, characters: with a prefix it stays below the 1024 bytes that S3 allows. */
const LONGEST_KEY = 500

/** Throws on a key that some store would read otherwise: `..`, an empty part, or other characters. */
export function checkKey(key: string): void {
  const parts = key.split('/')
  const isPlain = parts.every((part) => /^[\w-][\w.-]*$/.test(part))
  if (isPlain && key.length <= LONGEST_KEY) return
  throw new FleetError('refused', `${JSON.stringify(key)} is not a key of an object store`)
}
