import { type ClientProgress, beginProgress, isSlow, updateProgress } from './progress.ts'

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
/** What is waited for: the rest of a body, a turn, or a client that takes its answer. */
type Waiting = 'waits' | 'queues' | 'sends'

/** What one holder has. */
export interface LedgerEntry {
  readonly holder: Holder
  bytes: number
  state: 'works' | Waiting | 'over'
  end: () => void
  /** What moves for a client that is waited for; null: nothing is expected of one. */
  progress: ClientProgress | null
}

/** The entries of an account, and their sums. */
export type Ledger = ReturnType<typeof createLedger>

/** Creates a ledger for so many bytes. */
export function createLedger(limit: number) {
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
    total: (): number => total,
    add(holder: Holder): LedgerEntry {
      const entry = newEntry(holder)
      entries.add(entry)
      return entry
    },
    change,
    remove: (entry: LedgerEntry): void => {
      entry.state = 'over'
      change(entry, -entry.bytes)
      entries.delete(entry)
    },
    /** Returns the bytes that others have to give back before an entry can take more; not above 0: it can. */
    wanting(entry: LedgerEntry, more: number): number {
      if (entry.bytes + more <= FEW_BYTES) return Math.min(total + more - limit, total - ofLarge + more - limit * KEPT)
      // A document larger than all is sent where no other large one is in the way.
      const isAlone = large.size === 0 || (large.size === 1 && large.has(entry))
      return isAlone ? 0 : total + more - limit * (1 - KEPT)
    },
  }
}

function newEntry(holder: Holder): LedgerEntry {
  return { holder, bytes: 0, state: 'works', end: () => undefined, progress: null }
}

/** Has an entry wait; see `Share`. `moved`: null while it waits for its turn, and nothing is expected of its client. */
export function wait(entry: LedgerEntry, state: Waiting, moved: (() => number) | null, end: () => void): void {
  if (entry.state === 'over') return
  const kind = state === 'sends' ? 'answer' : 'body'
  entry.state = state
  entry.end = end
  entry.progress = moved === null ? null : beginProgress(kind, moved)
}

/** Has an entry wait for nothing any more. */
export function work(entry: LedgerEntry): void {
  if (entry.state === 'over') return
  entry.state = 'works'
  entry.end = () => undefined
  entry.progress = null
}

/** Returns the bytes of entries. */
export function sumOf(entries: Iterable<LedgerEntry>): number {
  let sum = 0
  for (const { bytes } of entries) sum += bytes
  return sum
}

/** Returns who makes room for one that asks for more, in this order. */
export function chooseVictims(entries: Iterable<LedgerEntry>, asking: LedgerEntry, more: number): LedgerEntry[] {
  const now = performance.now()
  const shares = new Map<string, number>()
  for (const { holder, bytes } of entries) shares.set(holder.address(), (shares.get(holder.address()) ?? 0) + bytes)
  const shareOf = ({ holder }: LedgerEntry): number => shares.get(holder.address()) ?? 0
  const own = shareOf(asking) + more
  const others = [...entries].filter((one) => isWaiting(one) && one !== asking)
  for (const { progress } of others) if (progress !== null) updateProgress(progress, now)
  const isKeyed = asking.holder.hasKey()
  const isBehind = ({ progress }: LedgerEntry): boolean => progress !== null && isSlow(progress, now)
  const mayDisplace = (one: LedgerEntry): boolean => {
    if (isBehind(one) || one.state === 'sends') return isBehind(one)
    if (one.holder.hasKey() !== isKeyed) return isKeyed
    return shareOf(one) > own
  }
  const order = (one: LedgerEntry, other: LedgerEntry): number =>
    Number(one.holder.hasKey()) - Number(other.holder.hasKey()) ||
    Number(isBehind(other)) - Number(isBehind(one)) ||
    shareOf(other) - shareOf(one) ||
    (isBehind(one) ? other.bytes - one.bytes : paidUntil(one) - paidUntil(other))
  return others.filter((one) => one.bytes > 0 && mayDisplace(one)).sort(order)
}

/** What waits for its turn makes room last. */
function paidUntil({ progress }: LedgerEntry): number {
  return progress?.paidUntil ?? Number.MAX_VALUE
}

function isWaiting({ state }: LedgerEntry): boolean {
  return state !== 'works' && state !== 'over'
}
