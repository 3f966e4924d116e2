import { randomBytes } from 'node:crypto'
import { messageOf } from '../../../base/errors.ts'
import { FleetError, type ObjectStore } from '../objects/object-store.ts'
import { LEASE_KEY, type Lease, fetchLease, followingEpoch, readLease, writeLease } from './lease.ts'
import type { LeaseProof } from './proof.ts'

/** What a keeper works with. */
interface KeeperOptions {
  readonly store: ObjectStore
  /** Identifies the data folder: no other process uses it at the same time. */
  readonly owner: string
  readonly name: string
  readonly url: string | null
  readonly seconds: () => number
  /** Milliseconds to wait before a lease is taken that does not exist or was given back: lets preferred mirrors take it. */
  readonly patienceMs: number
  /** The highest epoch of any generation known: a new leadership has a higher one. */
  readonly floor: () => number
  /** Milliseconds of a clock that is never set, for durations. */
  readonly clock: () => number
  /** Unix milliseconds, for what operators read. */
  readonly now: () => number
  readonly token?: () => string
  /** Whether the store can keep a lease; without it, that is assumed. */
  readonly proof?: LeaseProof
}

/** What is known of the leadership. */
interface Leadership {
  /** The epoch under which this mirror leads; null: it does not. */
  readonly epoch: number | null
  /** Milliseconds to the end of the own lease; null: it does not end by itself. */
  readonly remainingMs: number | null
  /** The lease of the mirror that leads by what the store said last; null: none does. */
  readonly lease: Lease | null
  /** Why the last step failed; null: it did not. */
  readonly failure: string | null
}

/** Takes, renews and releases the lease. */
export interface LeaseKeeper {
  /**
   * Does what is due: reads the lease, renews an own one after a third of its time, takes one that ended if `mayTake`. Never
   * throws. Call it each `stepMs`, one call at a time.
   */
  step(mayTake: boolean): Promise<Leadership>
  leadership(): Leadership
  /** Gives an own lease back, so that another mirror need not wait for its end. */
  release(): Promise<void>
  /** Milliseconds between two steps. */
  readonly stepMs: () => number
}

/** A lease as it was read. */
interface Seen {
  readonly lease: Lease | null
  readonly etag: string | null
  /** When this content was first seen, by the clock. */
  readonly since: number
  /** Whether it had been given back, or was not renewed for its duration, when it was read last. */
  readonly isOver: boolean
}

/** The own leadership. */
interface Own {
  readonly epoch: number
  readonly token: string
  readonly renewal: number
  /** By the clock: no later than any other mirror takes the lease. */
  readonly until: number
  /** Null: a write got no answer, so the etag must be read. */
  readonly etag: string | null
}

/** What a keeper remembers. */
interface Memory {
  seen: Seen | null
  own: Own | null
  failure: string | null
}

/**
 * Creates the keeper of a lease. A lease ends for others when its content did not change for its duration, counted from when
 * they first saw it, and for its owner when as long went by since it sent the last renewal: so it always ends for the
 * owner first, and no two clocks are compared. Only double work depends on it: what is published is protected by the
 * generations, which are created under numbers that exist once.
 */
export function createLeaseKeeper(options: KeeperOptions): LeaseKeeper {
  const { clock } = options
  const memory: Memory = { seen: null, own: null, failure: null }
  const leadership = (): Leadership => {
    const { own, seen, failure } = memory
    const remainingMs = Math.max(0, own === null ? 0 : own.until - clock())
    const epoch = own !== null && remainingMs > 0 ? own.epoch : null
    const lease = seen === null || seen.isOver ? null : seen.lease
    return { epoch, remainingMs, lease, failure }
  }
  const release = async (): Promise<void> => {
    try {
      if (memory.own !== null) await renew(options, memory, memory.own, true)
    } finally {
      memory.own = null
    }
  }
  const work = async (mayTake: boolean): Promise<void> => {
    const { own } = memory
    if (own !== null && !mayTake) return release()
    if (own !== null) return clock() < renewsAt(own, options) ? undefined : renew(options, memory, own)
    const current = await read(options, memory)
    const isProven = mayTake && (options.proof?.() ?? true)
    if (isProven && isFree(current, options)) await take(options, memory, current)
  }
  return {
    async step(mayTake) {
      try {
        await work(mayTake)
        memory.failure = null
      } catch (error) {
        memory.failure = messageOf(error)
      }
      return leadership()
    },
    leadership,
    release: () => release().catch(() => undefined),
    stepMs: () => Math.max(200, options.seconds() * 100),
  }
}

/** Reads the lease. An own one that is not stored any more is lost. */
async function read({ store, clock }: KeeperOptions, memory: Memory): Promise<Seen> {
  const { lease, etag } = await fetchLease(store)
  const { seen, own } = memory
  const since = seen !== null && seen.etag === etag ? seen.since : clock()
  const isOwn = own !== null && lease?.token === own.token && !lease.released
  memory.own = isOwn ? { ...own, etag } : null
  const isOver = lease !== null && (lease.released || clock() - since > lease.seconds * 1000)
  memory.seen = { lease, etag, since, isOver }
  return memory.seen
}

/** Writes the lease under an own token; it is the own one afterwards if it is stored. */
async function write(
  options: KeeperOptions,
  memory: Memory,
  next: Omit<Lease, 'expiresAt'>,
  etag: string | null,
): Promise<void> {
  const sentAt = options.clock()
  const body = writeLease(next, options.now())
  const { epoch, token, renewal } = next
  const written = await attempt(options, body, etag)
  if (written === 'unknown' && memory.own !== null) memory.own = { ...memory.own, etag: null }
  const stored =
    typeof written === 'string' ? await read(options, memory) : { lease: readLease(body), etag: written.etag }
  if (stored.lease?.token !== token || stored.lease.renewal !== renewal) return
  memory.seen = {
    lease: stored.lease,
    etag: stored.etag,
    since: options.clock(),
    isOver: next.released,
  }
  memory.own = { epoch, token, renewal, until: sentAt + next.seconds * 1000, etag: stored.etag }
}

async function renew(options: KeeperOptions, memory: Memory, own: Own, released = false): Promise<void> {
  const etag = own.etag ?? (await read(options, memory)).etag
  if (memory.own === null || etag === null) return
  const { epoch, token, renewal } = own
  const next = { ...describe(options), epoch, token, renewal: renewal + 1, released }
  await write(options, memory, next, etag)
}

async function take(options: KeeperOptions, memory: Memory, { lease, etag }: Seen): Promise<void> {
  const token = (options.token ?? randomToken)()
  const epoch = followingEpoch(lease?.epoch ?? 0, options.floor())
  await write(options, memory, { ...describe(options), epoch, token, renewal: 0, released: false }, etag)
}

/** Writes the lease once. `other`: another content is stored; `unknown`: no answer says what is stored now. */
async function attempt(
  { store }: KeeperOptions,
  body: Buffer,
  etag: string | null,
): Promise<{ etag: string } | 'other' | 'unknown'> {
  try {
    const info =
      etag === null ? await store.putIfAbsent(LEASE_KEY, body) : await store.putIfMatch(LEASE_KEY, body, etag)
    return info ?? 'other'
  } catch (error) {
    if (error instanceof FleetError && error.outcome === 'unknown') return 'unknown'
    throw error
  }
}

function describe({ owner, name, url, seconds }: KeeperOptions) {
  return { owner, name, url, seconds: seconds() }
}

function renewsAt({ until }: Own, { seconds }: KeeperOptions): number {
  return until - (seconds() * 1000 * 2) / 3
}

/** Reports whether the lease may be taken: there is none, it ended, or this data folder had it before a restart. */
function isFree({ lease, etag, since }: Seen, { owner, patienceMs, clock }: KeeperOptions): boolean {
  if (lease?.owner === owner) return true
  const unchanged = clock() - since
  if (etag === null || lease?.released === true) return unchanged >= patienceMs
  return unchanged >= (lease?.seconds ?? 30) * 1000
}

/**
 * Creates the keeper of a store that cannot keep a lease: the operator promises that one mirror of the fleet leads. Its epoch
 * is one above the last generation's, found when it may lead for the first time.
 */
export function createSoleKeeper({ floor }: Pick<KeeperOptions, 'floor'>): LeaseKeeper {
  let epoch: number | null = null
  const leadership = (): Leadership => ({ epoch, remainingMs: null, lease: null, failure: null })
  return {
    step(mayTake) {
      epoch = mayTake ? (epoch ?? floor() + 1) : null
      return Promise.resolve(leadership())
    },
    leadership,
    release() {
      epoch = null
      return Promise.resolve()
    },
    stepMs: () => 1000,
  }
}

function randomToken(): string {
  return randomBytes(16).toString('hex')
}
