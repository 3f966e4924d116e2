import type { ServerResponse } from 'node:http'

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
/** A reader that has been tried is left alone for this long, milliseconds. */
const TRIED_MS = 1_800_000

/**
 * Creates the places. When all are taken, a reader with a key takes the place of one without; otherwise the address that has
 * most readers gives one up to an address that has at least two fewer. A newcomer that is refused has those that have a place
 * tried: they are sent comments until they have read more than any buffer takes. One that does not read is found by the next
 * heartbeats, as its bytes do not leave.
 */
export function createPlaces<Reader extends StreamReader>(limit: number): Places<Reader> {
  const readers = new Set<Reader>()
  const triedAt = new WeakMap<Reader, number>()
  const tried = new Set<Reader>()
  const tryOne = (reader: Reader): void => {
    triedAt.set(reader, performance.now())
    tried.add(reader)
    let left = TRY_BYTES
    const next = (): void => {
      const { response } = reader
      const isOver = left <= 0 || response.destroyed || response.writableEnded
      if (isOver) return void tried.delete(reader)
      left -= COMMENT.length
      response.write(COMMENT, next)
    }
    next()
  }
  const tryReaders = (): void => {
    const since = performance.now() - TRIED_MS
    for (const reader of readers) {
      if (tried.size >= TRIED_AT_ONCE) return
      if ((triedAt.get(reader) ?? -Infinity) < since) tryOne(reader)
    }
  }
  const leave = (reader: Reader): void => {
    readers.delete(reader)
    tried.delete(reader)
  }
  return {
    readers,
    take(reader) {
      if (readers.size >= limit) {
        const other = chooseOther(readers, reader)
        if (other === null) {
          tryReaders()
          return false
        }
        leave(other)
        other.response.destroy()
      }
      readers.add(reader)
      return true
    },
    hasRoom: (reader) => readers.size < limit || chooseOther(readers, reader) !== null,
    leave,
  }
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
