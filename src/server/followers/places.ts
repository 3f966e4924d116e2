import type { ServerResponse } from 'node:http'
import { type ClientProgress, beginProgress, isSlow, updateProgress } from '../../base/connections/progress.ts'
import { sentBytes } from '../../base/connections/sent.ts'

/** A reader of a stream, and what its place is judged by. */
export interface StreamReader {
  readonly response: ServerResponse
  /** Network of its client: what shares are counted by. */
  readonly address: string
  /** Whether it was let in with a key. */
  readonly hasKey: boolean
}

/** The places of the readers of one stream. */
interface Places<Reader extends StreamReader> {
  readonly readers: ReadonlySet<Reader>
  /** Takes a reader in, in the place of another where none is free; false: there is no place, and those that have one are tried. */
  take(reader: Reader): boolean
  /** Reports whether one would be taken in, without taking a place. */
  hasRoom(reader: Omit<Reader, 'response'>): boolean
  leave(reader: Reader): void
}

/**
 * Bytes of comments with which it is tried whether a reader reads. A client that reads nothing has taken them when they lie in the
 * buffers of the two systems: together those have less room, on one machine about 3 MB, over a network some hundred kilobytes.
 */
const TRY_BYTES = 8 * 2 ** 20
/** A comment of 64 KiB. */
const COMMENT = Buffer.from(`:${' '.repeat(64 * 1024 - 3)}\n\n`)
/** Readers that are tried at the same time: each costs a comment, and what lies in the system's buffers. */
const TRIED_AT_ONCE = 16
/** A reader that has been tried is left alone for this long, and an address of silent readers is remembered, milliseconds. */
const TRIED_MS = 1_800_000
/** Addresses of silent readers that are remembered. */
const MOST_SILENT = 10_000
/** Interval between two looks at what readers take that are tried, milliseconds. */
const LOOK_MS = 1_000

/**
 * Creates the places. When all are taken, a reader that reads nothing gives its place up first. Then a reader with a key takes the
 * place of one without, and the address that has most readers gives one up to an address that has at least two fewer. A newcomer
 * that is refused has those that have a place tried: they are sent comments until they have read more than any buffer takes.
 */
export function createPlaces<Reader extends StreamReader>(limit: number): Places<Reader> {
  const readers = new Set<Reader>()
  const trials = createTrials(readers)
  const findOther = (reader: Omit<Reader, 'response'>): Reader | null =>
    trials.findSilent(reader) ?? chooseOther(readers, reader)
  const leave = (reader: Reader): void => {
    readers.delete(reader)
    trials.end(reader)
  }
  return {
    readers,
    take(reader) {
      if (readers.size >= limit) {
        const other = findOther(reader)
        if (other === null) {
          trials.begin()
          return false
        }
        leave(other)
        other.response.destroy()
      }
      readers.add(reader)
      return true
    },
    hasRoom: (reader) => readers.size < limit || findOther(reader) !== null,
    leave,
  }
}

/** Finds out who reads. */
interface Trials<Reader extends StreamReader> {
  /** Tries readers that were not tried lately, some at a time. */
  begin(): void
  end(reader: Reader): void
  /** Returns a reader that reads nothing, whose place another one takes; null: none is known. */
  findSilent(reader: Omit<Reader, 'response'>): Reader | null
}

/**
 * Creates the trials of readers. A reader is known when it has read everything. An address with a reader that took nothing is
 * remembered: its next readers give way as well, until they have read.
 */
function createTrials<Reader extends StreamReader>(readers: ReadonlySet<Reader>): Trials<Reader> {
  const triedAt = new WeakMap<Reader, number>()
  const proven = new WeakSet<Reader>()
  const tried = new Map<Reader, ClientProgress>()
  const silentAt = new Map<string, number>()
  let timer: NodeJS.Timeout | null = null
  const look = (): void => {
    const now = performance.now()
    for (const [reader, progress] of tried) {
      updateProgress(progress, now)
      if (!isSlow(progress, now)) continue
      if (silentAt.size >= MOST_SILENT) silentAt.clear()
      silentAt.set(reader.address, now)
    }
    if (tried.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }
  const prove = (reader: Reader): void => {
    proven.add(reader)
    silentAt.delete(reader.address)
    tried.delete(reader)
  }
  const isSilentAddress = (address: string): boolean =>
    performance.now() - (silentAt.get(address) ?? -Infinity) < TRIED_MS
  const begin = (reader: Reader): void => {
    const { response } = reader
    const { socket } = response.req
    triedAt.set(reader, performance.now())
    tried.set(
      reader,
      beginProgress('answer', () => sentBytes(socket)),
    )
    timer ??= setInterval(look, LOOK_MS).unref()
    sendComments(response, () => prove(reader))
  }
  return {
    begin() {
      const since = performance.now() - TRIED_MS
      for (const reader of readers) {
        if (tried.size >= TRIED_AT_ONCE) return
        if ((triedAt.get(reader) ?? -Infinity) < since) begin(reader)
      }
    },
    end: (reader) => void tried.delete(reader),
    findSilent({ address, hasKey }) {
      if (!hasKey && isSilentAddress(address)) return null
      const silent = [...readers].filter(
        (one) => (hasKey || !one.hasKey) && isSilentAddress(one.address) && !proven.has(one),
      )
      return silent.find((one) => !one.hasKey) ?? silent[0] ?? null
    },
  }
}

/** Sends comments, each when the one before has left; calls `read` when all have. */
function sendComments(response: ServerResponse, read: () => void): void {
  let left = TRY_BYTES
  const next = (): void => {
    if (response.destroyed || response.writableEnded) return
    if (left <= 0) return read()
    left -= COMMENT.length
    response.write(COMMENT, next)
  }
  next()
}

/** Returns the reader whose place another one takes; null: none. Within an address it is the one that came first. */
function chooseOther<Reader extends StreamReader>(
  readers: ReadonlySet<Reader>,
  { address, hasKey }: Omit<StreamReader, 'response'>,
): Reader | null {
  const open = [...readers].filter((one) => !one.hasKey)
  const counts = new Map<string, number>()
  for (const one of open) counts.set(one.address, (counts.get(one.address) ?? 0) + 1)
  const most = Math.max(0, ...counts.values())
  const isLess = (counts.get(address) ?? 0) + 2 <= most
  if (!hasKey && !isLess) return null
  return open.find((one) => counts.get(one.address) === most) ?? null
}
