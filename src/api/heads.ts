import type { Coding } from './negotiate.ts'
import type { Origin } from './origin.ts'

/** The header fields that all JSON answers of one origin and coding share. */
export interface SharedHead {
  /** Names and values, one flat list: what a 304 repeats. */
  readonly validated: readonly string[]
  /** The same and what only goes with a body. */
  readonly full: readonly string[]
  /** `full` as it goes over the wire. */
  readonly text: string
}

/** Makes each shared head once: an origin is replaced whenever anything in it changes. */
export function createHeads(cacheControl: string): (origin: Origin, coding: Coding) => SharedHead {
  const made = new WeakMap<Origin, Readonly<Record<Coding, SharedHead>>>()
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

function makeHead(origin: Origin, cacheControl: string, encoding: readonly string[]): SharedHead {
  const validated = [
    'Cache-Control',
    cacheControl,
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
