import { toIso } from '../../../base/time.ts'
import { type ObjectStore, OversizedError, readObject } from '../objects/object-store.ts'
import { isCount } from '../../../base/json/objects.ts'

/** Where the lease is stored. */
export const LEASE_KEY = 'lease.json'

/** The most bytes that a lease has. */
const LEASE_MAX_BYTES = 16_384

/** The content of `lease.json`: which mirror leads the fleet. */
export interface Lease {
  /** Number of this leadership: each one is higher than all before it. */
  readonly epoch: number
  /** Identifies a data folder on a host: a mirror that restarts recognizes its own lease. */
  readonly owner: string
  /** Random text of this leadership, by which its owner recognizes a write whose answer was lost. */
  readonly token: string
  /** Name of the mirror, for operators. */
  readonly name: string
  /** Address at which the leader takes webhooks; null: unknown. */
  readonly url: string | null
  /** The lease ends when it was not renewed for so many seconds. */
  readonly seconds: number
  /** Counts the renewals, so that no two writes have the same content. */
  readonly renewal: number
  /** By the leader's clock, for operators: nothing is decided by it. */
  readonly expiresAt: string
  /** The leader gave it back: it can be taken at once. */
  readonly released: boolean
}

/** Returns the lease as it is stored; `now`: Unix milliseconds. */
export function writeLease(lease: Omit<Lease, 'expiresAt'>, now: number): Buffer {
  const expiresAt = toIso(now + lease.seconds * 1000)
  return Buffer.from(`${JSON.stringify({ ...lease, expiresAt })}\n`)
}

/** Reads a stored lease; null for content that is none, which can be taken like a lease that ended. */
export function readLease(bytes: Buffer): Lease | null {
  const found = parse(bytes)
  if (!isText(found['owner']) || !isText(found['token']) || !isCount(found['epoch'])) return null
  const { epoch, owner, token, name, url, seconds, renewal, expiresAt, released } = found
  return {
    epoch,
    owner,
    token,
    released: released === true,
    name: isText(name) ? name : owner,
    url: isText(url) ? url : null,
    seconds: isCount(seconds) && seconds > 0 && seconds <= MOST_SECONDS ? seconds : 30,
    renewal: isCount(renewal) ? renewal : 0,
    expiresAt: isText(expiresAt) ? toIso(Date.parse(expiresAt) || 0) : toIso(0),
  }
}

/** A lease that claims more cannot keep other mirrors from leading for longer. */
const MOST_SECONDS = 3600

function parse(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= 2000
}

/** What is stored as the lease. */
export interface StoredLease {
  /** Null for content that is none. */
  readonly lease: Lease | null
  /** Null where nothing is stored. */
  readonly etag: string | null
  /** When it was written, Unix milliseconds by the store's clock; 0 where nothing is stored. */
  readonly writtenAt: number
}

/** Returns what is stored as the lease. */
export async function fetchLease(store: ObjectStore): Promise<StoredLease> {
  try {
    const found = await readObject(store, LEASE_KEY, LEASE_MAX_BYTES)
    if (found === null) return { lease: null, etag: null, writtenAt: 0 }
    return { lease: readLease(found.bytes), etag: found.info.etag, writtenAt: found.info.modifiedAt }
  } catch (error) {
    if (!(error instanceof OversizedError)) throw error
    const { etag = null, modifiedAt = 0 } = (await store.head(LEASE_KEY)) ?? {}
    return { lease: null, etag, writtenAt: modifiedAt }
  }
}

/**
 * Returns when a lease ends that is not renewed any more, Unix milliseconds by the store's clock: that of the leader may be another one.
 * A command that reads it once compares the clock here, so it says that.
 */
export function endOf({ seconds }: Lease, writtenAt: number): number {
  return writtenAt + seconds * 1000
}

/** The most leaderships that are believed to have ended without a generation. */
const MOST_UNUSED = 1_000_000

/**
 * Returns the epoch of a new leadership. The lease is not signed, and generations that are can never go back to a lower
 * epoch: an epoch far above theirs, which no leader can have reached, is not continued.
 */
export function followingEpoch(stored: number, floor: number): number {
  return (stored > floor + MOST_UNUSED ? floor : Math.max(stored, floor)) + 1
}
