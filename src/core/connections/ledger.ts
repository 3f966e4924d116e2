/** Who holds bytes; both are asked for only while bytes are short. */
export interface Holder {
  /** Returns the address, or the network, by which shares are counted. */
  readonly address: () => string
  /** Reports whether the client has a key of this mirror. */
  readonly hasKey: () => boolean
}

/** Part of all bytes, as a fraction, that only holders of few bytes get: a query is answered while large bodies fill the rest. */
const KEPT = 1 / 8
/** Few bytes: those of most queries, deliveries and answers. */
const FEW_BYTES = 256 * 1024
/** Interval between two looks at how much moves, while more than half of the bytes are share, milliseconds. */
export const LOOK_MS = 1_000
/** Younger holders are not judged by how much moves, milliseconds. */
const YOUNG_MS = 2 * LOOK_MS
/** Bytes a second that a client sends or takes at least, unless it is slow: a quarter of a megabit. */
export const SLOW_BYTES = 32 * 1024

/** What is waited for: the rest of a body or a turn, or a client that takes its answer. */
type Waiting = 'waits' | 'sends'

/** What one holder has. */
export interface LedgerEntry {
  readonly holder: Holder
  readonly since: number
  bytes: number
  state: 'works' | Waiting | 'over'
  moved: () => number
  end: () => void
  /** What had moved at the last look, when that was, and how much a second had moved since the one before. */
  seen: number
  seenAt: number
  rate: number
  movedAt: number
}

/** Of an entry that waits for nothing. */
export const NOTHING = { moved: () => 0, end: () => undefined }

/** The entries of an account, and their sums. */
export interface Ledger {
  readonly entries: ReadonlySet<LedgerEntry>
  readonly total: () => number
  readonly add: (holder: Holder) => LedgerEntry
  readonly change: (entry: LedgerEntry, by: number) => void
  readonly remove: (entry: LedgerEntry) => void
  /** Returns the bytes that others have to give back before an entry can take more; not above 0: it can. */
  readonly wanting: (entry: LedgerEntry, more: number) => number
}

/** Creates a ledger for so many bytes. */
export function createLedger(limit: number): Ledger {
  const entries = new Set<LedgerEntry>()
  const large = new Set<LedgerEntry>()
  let total = 0
  let ofLarge = 0
  const change = (entry: LedgerEntry, by: number): void => {
    if (large.delete(entry)) ofLarge -= entry.bytes
    entry.bytes += by
    total += by
    if (entry.bytes <= FEW_BYTES) return
    large.add(entry)
    ofLarge += entry.bytes
  }
  return {
    entries,
    total: () => total,
    add(holder) {
      const entry = newEntry(holder)
      entries.add(entry)
      return entry
    },
    change,
    remove(entry) {
      entry.state = 'over'
      change(entry, -entry.bytes)
      entries.delete(entry)
    },
    wanting(entry, more) {
      if (entry.bytes + more <= FEW_BYTES)
        return Math.min(total + more - limit, total - ofLarge + more - limit * KEPT)
      // A document larger than all is sent where no other large one is in the way.
      const isAlone = large.size === 0 || (large.size === 1 && large.has(entry))
      return isAlone ? 0 : total + more - limit * (1 - KEPT)
    },
  }
}

function newEntry(holder: Holder): LedgerEntry {
  const now = performance.now()
  const times = { since: now, seenAt: now, movedAt: now }
  return { ...times, ...NOTHING, holder, bytes: 0, state: 'works', seen: 0, rate: Infinity }
}

/** Reports whether an entry waits for its client, or for its turn. */
export function isWaiting({ state }: LedgerEntry): boolean {
  return state === 'waits' || state === 'sends'
}

/** Has an entry wait; see `Share`. */
export function wait(
  entry: LedgerEntry,
  state: Waiting,
  moved: () => number,
  end: () => void,
): void {
  if (entry.state === 'over') return
  const now = performance.now()
  entry.state = state
  entry.moved = moved
  entry.end = end
  entry.seen = moved()
  entry.seenAt = now
  entry.movedAt = now
  entry.rate = Infinity
}

/** Looks how much has moved since the last look; not sooner than that can be judged. */
export function updateRate(entry: LedgerEntry, now: number): void {
  const elapsed = now - entry.seenAt
  if (!isWaiting(entry) || elapsed < LOOK_MS / 2) return
  const moved = entry.moved()
  if (moved !== entry.seen) entry.movedAt = now
  entry.rate = ((moved - entry.seen) * 1000) / elapsed
  entry.seen = moved
  entry.seenAt = now
}

/** Returns the bytes of entries. */
export function sumOf(entries: Iterable<LedgerEntry>): number {
  let sum = 0
  for (const { bytes } of entries) sum += bytes
  return sum
}

/** Returns who makes room for one that asks for more, in this order. */
export function chooseVictims(
  entries: Iterable<LedgerEntry>,
  asking: LedgerEntry,
  more: number,
): LedgerEntry[] {
  const now = performance.now()
  const shares = new Map<string, number>()
  for (const { holder, bytes } of entries)
    shares.set(holder.address(), (shares.get(holder.address()) ?? 0) + bytes)
  const shareOf = ({ holder }: LedgerEntry): number => shares.get(holder.address()) ?? 0
  const own = shareOf(asking) + more
  const others = [...entries].filter((one) => isWaiting(one) && one !== asking)
  others.forEach((one) => updateRate(one, now))
  const isKeyed = asking.holder.hasKey()
  const mayDisplace = (one: LedgerEntry): boolean => {
    if (isSlow(one, now) || one.state === 'sends') return isSlow(one, now)
    if (one.holder.hasKey() !== isKeyed) return isKeyed
    return shareOf(one) > own
  }
  const order = (one: LedgerEntry, other: LedgerEntry): number =>
    Number(one.holder.hasKey()) - Number(other.holder.hasKey()) ||
    Number(isSlow(other, now)) - Number(isSlow(one, now)) ||
    shareOf(other) - shareOf(one) ||
    (isSlow(one, now) ? other.bytes - one.bytes : one.rate - other.rate)
  return others.filter((one) => one.bytes > 0 && mayDisplace(one)).sort(order)
}

function isSlow(entry: LedgerEntry, now: number): boolean {
  return now - entry.since >= YOUNG_MS && entry.rate < SLOW_BYTES
}
