import type { Coding } from './negotiate.ts'
import type { SnapshotOrigin } from './origin.ts'

/** The header fields that all JSON answers of one origin and coding share. */
export interface ResponseHead {
  /** Names and values, one flat list: what a 304 repeats. */
  readonly validated: readonly string[]
  /** The same and what only goes with a body. */
  readonly full: readonly string[]
  /** `full` as it goes over the wire. */
  readonly text: string
}

/** Makes each shared head once: an origin is replaced whenever anything in it changes. */
export function createHeads(
  cacheControl: string,
): (origin: SnapshotOrigin, coding: Coding) => ResponseHead {
  const made = new WeakMap<SnapshotOrigin, Readonly<Record<Coding, ResponseHead>>>()
  return (origin, coding) => {
    let heads = made.get(origin)
    if (heads === undefined) {
      const identity = makeHead(origin, cacheControl, [])
      const gzip = makeHead(origin, cacheControl, ['Content-Encoding', 'gzip'])
      heads = { identity, gzip }
      made.set(origin, heads)
    }
    return heads[coding]
  }
}

export type Heads = ReturnType<typeof createHeads>

/** The Cache-Control of public answers that a shared cache must ask about each time. */
const ASK_ALWAYS = 'public, max-age=0, must-revalidate'

/**
 * Header fields that say how long caches may keep an answer. nginx stores nothing with `max-age=0`, and then drops conditions and ranges
 * on the way, so that each is answered with everything. By its own field it stores the answer as one that is out of date
 * already (`@1` is a second of 1970): it asks each time, and makes 304 and 206 by itself. Before Cache-Control, as nginx up to
 * 1.23 goes by the first.
 */
export function cacheFields(cacheControl: string): string[] {
  const nginx = cacheControl === ASK_ALWAYS ? ['X-Accel-Expires', '@1'] : []
  return [...nginx, 'Cache-Control', cacheControl]
}

function makeHead(
  origin: SnapshotOrigin,
  cacheControl: string,
  encoding: readonly string[],
): ResponseHead {
  const validated = [
    ...cacheFields(cacheControl),
    'Vary',
    'Accept-Encoding',
    'X-Mirror-Snapshot',
    origin.snapshot,
    'X-Mirror-As-Of',
    origin.asOf,
  ]
  const full = [...validated, 'Content-Type', 'application/json', ...encoding]
  return { validated, full, text: headText(full) }
}

/** `Name: value` lines of a flat list. */
export function headText(fields: readonly string[]): string {
  let text = ''
  for (let at = 0; at + 1 < fields.length; at += 2) text += `${fields[at]}: ${fields[at + 1]}\r\n`
  return text
}
