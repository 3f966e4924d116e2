import { FRAME, inflateMembers } from '../base/gzip/member.ts'
import { refuseComparison } from '../documents/differences/bounds.ts'
import { jsonTextOf } from '../base/json/objects.ts'
import { contentOf, sizeOf } from '../store/database/gzip.ts'
import type { ParsedRecord } from './kinds.ts'

/** Largest record that is compared, bytes. */
const MAX_COMPARED = 2 ** 20

/** A version of a record: a gzip member of its bytes, their size and digest. */
export interface Version {
  readonly body: Buffer
  readonly size: number
  readonly sha256: Buffer
}

/** A version as parsed, or why it is not compared. */
export type ParsedVersion = ParsedRecord | string

/** The version before a change, and the one after it. */
export type BeforeAndAfter<Value> = readonly [before: Value, after: Value]

/** Changed records whose versions are inflated in one call, and bytes of their contents, unless one alone has more. */
const BATCH = { records: 64, bytes: 2 ** 19 }

/** Calls `decide` with what was added and its versions, if it has any, many at a time: in the order in which they were added. */
export function createPairBatch<Item>(decide: (item: Item, versions: BeforeAndAfter<ParsedVersion> | null) => void) {
  let waiting: { item: Item; versions: BeforeAndAfter<Version> | null }[] = []
  let bytes = 0
  const decideAll = (): void => {
    const parsed = parseVersions(waiting.flatMap(({ versions }) => versions ?? []))
    const next = (): ParsedVersion => parsed.next().value ?? DAMAGED
    for (const { item, versions } of waiting) decide(item, versions && [next(), next()])
    waiting = []
    bytes = 0
  }
  return {
    /** The versions' buffers may be used again after the call. */
    add(item: Item, versions: BeforeAndAfter<Version> | null): void {
      waiting.push({ item, versions: versions && [copyOf(versions[0]), copyOf(versions[1])] })
      bytes += versions === null ? 0 : versions[0].size + versions[1].size
      if (waiting.length >= BATCH.records || bytes >= BATCH.bytes) decideAll()
    },
    decide: decideAll,
  }
}

function copyOf({ body, size, sha256 }: Version): Version {
  return { body: Buffer.from(body), size, sha256 }
}

/** Yields what versions say. They are inflated together, and parsed one by one: a parsed version is not kept for long. */
function* parseVersions(versions: readonly Version[]): Generator<ParsedVersion, undefined> {
  const contents = contentsOf(versions.filter(isSmall))
  let at = 0
  for (const version of versions) yield isSmall(version) ? parse(contents[at++] ?? null) : TOO_LARGE
}

function isSmall({ size }: Version): boolean {
  return size <= MAX_COMPARED
}

/** Returns the contents of versions; null for one whose bytes are damaged. */
function contentsOf(versions: readonly Version[]): (Buffer | null)[] {
  const joined = versions.every(isOfItsSize) ? inflateJoined(versions) : null
  if (joined === null) return versions.map(contentAlone)
  let at = 0
  return versions.map((one) => joined.subarray(at, (at += one.size)))
}

function isOfItsSize({ body, size }: Version): boolean {
  return body.length > FRAME && sizeOf(body) === size
}

function inflateJoined(versions: readonly Version[]): Buffer | null {
  let end = 0
  const ends = versions.map(({ body }) => (end += body.length))
  return inflateMembers(Buffer.concat(versions.map(({ body }) => body)), ends)
}

function contentAlone({ body, size }: Version): Buffer | null {
  try {
    return contentOf(body, size)
  } catch {
    return null
  }
}

function parse(content: Buffer | null): ParsedVersion {
  if (content === null) return DAMAGED
  try {
    const text = jsonTextOf(content)
    const json = JSON.parse(text) as unknown
    const refusal = refuseComparison(text, json)
    return refusal === null ? { json, length: text.length } : `not compared: ${refusal}`
  } catch {
    return DAMAGED
  }
}

const TOO_LARGE = `not compared: larger than ${MAX_COMPARED} bytes`
const DAMAGED = 'not compared: its stored bytes cannot be read (run "patchmirror verify")'
