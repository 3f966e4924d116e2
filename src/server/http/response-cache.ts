import { markShared, unmarkShared } from '../../base/connections/responses.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Coding } from './request-headers.ts'
import type { JsonResponse } from './response.ts'

/**
 * What an entry costs beside its key and bodies, in bytes: map slot, entry, and per answer the object, its
 * header texts, and Node's bookkeeping of a Buffer. Measured by filling a cache and weighing the process.
 */
const ENTRY_OVERHEAD = 160
const ANSWER_OVERHEAD = 560

/**
 * When the cache is full, only every n-th new entry is admitted: frequently requested answers are admitted soon, and a scan
 * over more than fits does not pay for copying and collecting answers that are not requested again.
 */
const ADMIT_ONE_IN = 8

interface Entry {
  readonly key: string
  readonly source: SourceName
  gzip: JsonResponse | undefined
  identity: JsonResponse | undefined
  bytes: number
  asked: boolean
}

/** Answers by key and coding, ready to send. */
export type AnswerCache = ReturnType<typeof createAnswerCache>

/**
 * Ready answers within a bound of bytes. Eviction is SIEVE: a hit only sets a flag; when room is needed, a
 * hand walks from the oldest entry on, spares the flagged ones once and removes the first that is not. The map's
 * own insertion order is the queue, and one long-lived iterator is the hand.
 */
export function createAnswerCache(maxBytes: number) {
  const entries = new Map<string, Entry>()
  let hand = entries.values()
  let usedBytes = 0
  let declined = 0

  const remove = (entry: Entry): void => {
    for (const answer of [entry.gzip, entry.identity]) if (answer) unmarkShared(answer.body)
    entries.delete(entry.key)
    usedBytes -= entry.bytes
  }
  const makeRoom = (): void => {
    while (usedBytes > maxBytes && entries.size > 0) {
      const step = hand.next()
      if (step.done === true) hand = entries.values()
      else if (step.value.asked) step.value.asked = false
      else remove(step.value)
    }
  }

  return {
    get(key: string, coding: Coding): JsonResponse | undefined {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      entry.asked = true
      return entry[coding]
    },
    put(key: string, source: SourceName, given: JsonResponse): void {
      const cost = given.body.byteLength + ANSWER_OVERHEAD
      const found = entries.get(key)
      const whole = (found?.bytes ?? key.length + ENTRY_OVERHEAD) + cost
      if (whole > maxBytes / 4) return // one answer must not empty the cache
      if (usedBytes + cost > maxBytes && ++declined % ADMIT_ONE_IN !== 0) return
      const entry = found ?? newEntry(key, source)
      if (entry[given.coding] !== undefined) return
      const kept = own(given)
      markShared(kept.body)
      entry[given.coding] = kept
      usedBytes += whole - entry.bytes
      entry.bytes = whole
      if (found === undefined) entries.set(key, entry)
      makeRoom()
    },
    /** Forgets what belongs to a source. */
    drop(source: SourceName): void {
      for (const entry of entries.values()) if (entry.source === source) remove(entry)
      hand = entries.values()
    },
    /** Bytes used, overhead included. */
    size: (): number => usedBytes,
  }
}

/** A small Buffer may be a piece of a larger one, which it would keep in memory: such a body is copied. */
function own(answer: JsonResponse): JsonResponse {
  const { body } = answer
  if (body.buffer.byteLength === body.length) return answer
  const copy = Buffer.allocUnsafeSlow(body.length)
  body.copy(copy)
  return { ...answer, body: copy }
}

function newEntry(key: string, source: SourceName): Entry {
  return { key, source, gzip: undefined, identity: undefined, bytes: 0, asked: false }
}
