import { counted } from '../text.ts'
import { type LedgerEntry, type Holder, type Ledger, chooseVictims, createLedger, sumOf, wait, work } from './ledger.ts'
import { isSlow, updateProgress } from './progress.ts'
import { type WarningLog, createCountedLog } from './counted-log.ts'

/** Why a holder lost its bytes, or got none; the label of the metric. */
export type Shortage = 'refused' | 'slow' | 'stopped'

/** The bytes that one request, or one answer, keeps in memory. */
export interface Share {
  /** Takes more; false: there is no room, and nothing was taken. */
  take(bytes: number): boolean
  /** Gives back some. */
  give(bytes: number): void
  /**
   * It waits for its client from now on: `moved` returns the bytes that came, or went, since some time in the past; `end` is
   * called once when it has to make room, and lets go of the bytes.
   */
  waits(moved: () => number, end: () => void): void
  /** The same for an answer under way: it makes room only when it is slow, as one that moves is over soon. */
  sends(moved: () => number, end: () => void): void
  /** It waits for its turn from now on: only an address that holds more than others makes room. */
  queues(end: () => void): void
  /** It is worked on from now on, and cannot make room. */
  works(): void
  /** Gives back everything; it takes nothing after that. */
  release(): void
}

/** The bytes that a process keeps for clients: of bodies that come in, and of answers that are not sent. */
export interface Account {
  hold(holder: Holder): Share
  /** Returns the bytes that are counted now. */
  readonly bytes: () => number
}

/** What differs in tests. */
interface AccountOptions {
  /** Called for each request that was refused or ended for want of room. */
  readonly onShort?: (why: Shortage) => void
  readonly bytes?: number
}

/**
 * Bytes of all clients together. Four bodies at the largest bound (16 MiB) fit in; with it the process stays far below the 512 MB
 * that small installations give it.
 */
const CLIENT_BYTES = 64 * 2 ** 20
/** Interval between two looks at how much moves, while any bytes are in use, milliseconds. */
const LOOK_MS = 1_000
/** A client of which nothing comes, or that takes nothing, for this long under pressure is ended, milliseconds. */
const STOPPED_MS = 10_000
/** For this long after a search that found no one to make room, the same address is refused without another, milliseconds. */
const SEARCH_MS = 100
/** Addresses of which that is remembered. */
const MOST_SEARCHED = 1_000

/** Creates the account of a process, which counts and logs what it refuses and ends. */
export function openAccount(log: WarningLog, onCount: (why: Shortage, count: number) => void): Account {
  const report = createCountedLog<Shortage>({ log, onCount, textOf: shortageText })
  return createAccount({ onShort: (why) => report(why, 1) })
}

function shortageText(why: Shortage, count: number): string {
  const texts: Readonly<Record<Shortage, string>> = {
    refused: 'were refused with 503: there is no room for what they send or ask for',
    slow: 'were ended: they were the slowest, or of the address that keeps most, when others needed room',
    stopped: `were ended: nothing moved for ${STOPPED_MS / 1000} seconds while room was short`,
  }
  const room = `bodies and unsent answers of all clients have ${CLIENT_BYTES / 2 ** 20} MiB together`
  return `${counted(count, 'request')} ${texts[why]} (${room})`
}

/**
 * Creates one account of bytes. When it is full, the slowest client makes room, of the address that holds most; where none is
 * slow, an address that holds more than the asking one does. Who has a key comes first, and a part is kept for small requests.
 */
export function createAccount({
  bytes: limit = CLIENT_BYTES,
  onShort = () => undefined,
}: AccountOptions = {}): Account {
  const ledger = createLedger(limit)
  let timer: NodeJS.Timeout | null = null
  const evict = (entry: LedgerEntry, why: Shortage): void => {
    const { end } = entry
    ledger.remove(entry)
    onShort(why)
    end()
  }
  const makeRoom = createRoomMaker(ledger, (entry) => evict(entry, 'slow'))
  const look = (): void => {
    const now = performance.now()
    const isShort = ledger.total() > limit / 2
    for (const entry of ledger.entries) {
      const { progress } = entry
      if (progress === null) continue
      updateProgress(progress, now)
      const hasStopped = now - progress.movedAt >= STOPPED_MS && isSlow(progress, now)
      if (isShort && hasStopped && entry.bytes > 0) evict(entry, 'stopped')
    }
    if (ledger.total() > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }
  const take = (entry: LedgerEntry, more: number): boolean => {
    if (entry.state === 'over') return false
    if (ledger.wanting(entry, more) > 0) makeRoom(entry, more)
    if (ledger.wanting(entry, more) > 0) {
      onShort('refused')
      return false
    }
    ledger.change(entry, more)
    if (ledger.total() > 0) timer ??= setInterval(look, LOOK_MS).unref()
    return true
  }
  return {
    hold: (holder) => shareIn(ledger, ledger.add(holder), take),
    bytes: ledger.total,
  }
}

/** Creates what ends others until an entry can take more; it ends none where that would not be enough. */
function createRoomMaker(ledger: Ledger, evict: (entry: LedgerEntry) => void) {
  const searchedAt = new Map<string, number>()
  return (entry: LedgerEntry, more: number): void => {
    const now = performance.now()
    const address = entry.holder.address()
    if (now - (searchedAt.get(address) ?? -Infinity) < SEARCH_MS) return
    const victims = chooseVictims(ledger.entries, entry, more)
    if (sumOf(victims) < ledger.wanting(entry, more)) {
      if (searchedAt.size >= MOST_SEARCHED) searchedAt.clear()
      searchedAt.set(address, now)
      return
    }
    for (const one of victims) if (ledger.wanting(entry, more) > 0) evict(one)
  }
}

function shareIn(
  { change, remove }: Ledger,
  entry: LedgerEntry,
  take: (entry: LedgerEntry, more: number) => boolean,
): Share {
  return {
    take: (more) => take(entry, more),
    give: (less) => change(entry, -Math.min(less, entry.bytes)),
    waits: (moved, end) => wait(entry, 'waits', moved, end),
    sends: (moved, end) => wait(entry, 'sends', moved, end),
    queues: (end) => wait(entry, 'queues', null, end),
    works: () => work(entry),
    release: () => remove(entry),
  }
}
