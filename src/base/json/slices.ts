import { hasMark } from './objects.ts'

/**
 * A range of bytes of a JSON text. The functions of this file find values without parsing the text, so that an answer
 * can be assembled from upstream's own bytes. The text must be valid JSON; they throw at anything else.
 */
export interface Slice {
  /** Offset of the first byte. */
  readonly start: number
  /** Offset after the last byte. */
  readonly end: number
}

/** A member of an object: its name decoded, its name and its value as slices. */
interface Member {
  readonly name: string
  readonly key: Slice
  readonly value: Slice
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Iterates over the members of the object at `at`, in order; empty when the value there is not an object. */
export function* membersOf(text: Buffer, at: number): Generator<Member> {
  let next = skipSpace(text, at)
  if (text[next] !== OPEN_OBJECT) return
  next = skipSpace(text, next + 1)
  while (text[next] !== CLOSE_OBJECT) {
    const key = { start: next, end: skipString(text, next) }
    const start = skipColon(text, key.end)
    const value = { start, end: skipValue(text, start) }
    yield { name: String(JSON.parse(sliceText(text, key))), key, value }
    next = skipComma(text, value.end, CLOSE_OBJECT)
  }
}

/** Iterates over the elements of the list at `at`; empty when the value there is not a list. */
export function* elementsOf(text: Buffer, at: number): Generator<Slice> {
  let next = skipSpace(text, at)
  if (text[next] !== OPEN_LIST) return
  next = skipSpace(text, next + 1)
  while (text[next] !== CLOSE_LIST) {
    const element = { start: next, end: skipValue(text, next) }
    yield element
    next = skipComma(text, element.end, CLOSE_LIST)
  }
}

/** Does the same as `membersOf` for an object of any size; yields undefined where the caller may pause. */
export function* membersInSteps(text: Buffer, at: number): Generator<Member | undefined> {
  let next = skipSpace(text, at)
  if (text[next] !== OPEN_OBJECT) return
  next = skipSpace(text, next + 1)
  while (text[next] !== CLOSE_OBJECT) {
    const key = { start: next, end: skipString(text, next) }
    const start = skipColon(text, key.end)
    const value = { start, end: yield* skipInSteps(text, start) }
    yield { name: String(JSON.parse(sliceText(text, key))), key, value }
    next = skipComma(text, value.end, CLOSE_OBJECT)
  }
}

/** Does the same as `elementsOf` for a list of any size; yields undefined where the caller may pause. */
export function* elementsInSteps(text: Buffer, at: number): Generator<Slice | undefined> {
  let next = skipSpace(text, at)
  if (text[next] !== OPEN_LIST) return
  next = skipSpace(text, next + 1)
  while (text[next] !== CLOSE_LIST) {
    const element = { start: next, end: yield* skipInSteps(text, next) }
    yield element
    next = skipComma(text, element.end, CLOSE_LIST)
  }
}

/** Returns the text of a slice. */
export function sliceText(text: Buffer, { start, end }: Slice): string {
  return text.toString('utf8', start, end)
}

/** Returns the offset of the first byte from `at` that is neither white space nor a byte order mark. */
export function skipSpace(text: Buffer, at: number): number {
  let next = at === 0 && hasMark(text) ? 3 : at
  while (text[next] === 0x20 || text[next] === 0x0a || text[next] === 0x0d || text[next] === 0x09) next++
  return next
}

/** Returns the offset of a member's value, from the one after its name. Throws when no colon follows. */
export function skipColon(text: Buffer, at: number): number {
  const colon = skipSpace(text, at)
  if (text[colon] !== COLON) throw unsound(colon)
  return skipSpace(text, colon + 1)
}

/** Returns the offset of the next element or member, or of `close`. Throws at anything else. */
export function skipComma(text: Buffer, at: number, close: number): number {
  const next = skipSpace(text, at)
  if (text[next] === close) return next
  if (text[next] !== COMMA) throw unsound(next)
  return skipSpace(text, next + 1)
}

/** Returns the offset after the string at `at`. Throws when there is none. */
export function skipString(text: Buffer, at: number): number {
  if (text[at] !== QUOTE) throw unsound(at)
  const near = Math.min(text.length, at + NEAR)
  let next = at + 1
  for (; next < near; next++) {
    if (text[next] === BACKSLASH) next++
    else if (text[next] === QUOTE) return next + 1
  }
  return skipLongString(text, next)
}

/** Bytes of a string that are looked at one by one: a search for its end costs more than so many. */
const NEAR = 64

/** Returns the offset after the string that goes on at `at`. */
function skipLongString(text: Buffer, at: number): number {
  for (let quote = text.indexOf(QUOTE, at); quote >= 0; quote = text.indexOf(QUOTE, quote + 1)) {
    let escapes = 0
    while (quote - escapes > at && text[quote - escapes - 1] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return quote + 1
  }
  throw unsound(at)
}

/** Returns the offset after the value at `at`. Throws when there is none. */
export function skipValue(text: Buffer, at: number): number {
  const first = text[at]
  if (first === QUOTE) return skipString(text, at)
  if (first === OPEN_OBJECT || first === OPEN_LIST) return skipNested(text, at)
  let next = at
  while (isLiteral(text[next])) next++
  if (next === at) throw unsound(at)
  return next
}

/** Returns whether a byte is part of a number, `true`, `false` or `null`. */
function isLiteral(byte: number | undefined): boolean {
  return byte !== undefined && byte > 0x20 && byte !== COMMA && byte !== 0x5d && byte !== 0x7d
}

function skipNested(text: Buffer, at: number): number {
  let depth = 0
  for (let next = at; next < text.length; next++) {
    const byte = text[next]
    if (byte === QUOTE) next = skipString(text, next) - 1
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--
    if (depth === 0) return next + 1
  }
  throw unsound(at)
}

/** Bytes scanned between two pauses: a fraction of a millisecond. */
const PIECE = 65_536

/** Does the same as `skipValue` for a value of any size. */
function* skipInSteps(text: Buffer, at: number): Generator<undefined, number> {
  const first = text[at]
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) return skipValue(text, at)
  let depth = 0
  let pause = at + PIECE
  for (let next = at; next < text.length; next++) {
    const byte = text[next]
    if (byte === QUOTE) next = skipString(text, next) - 1
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--
    if (depth === 0) return next + 1
    if (next < pause) continue
    pause = next + PIECE
    yield
  }
  throw unsound(at)
}

function unsound(at: number): Error {
  return new Error(`unexpected JSON at byte ${at}`)
}

/** Path of a value from the top: names of members and indexes in lists. */
export type JsonPath = readonly (string | number)[]

/**
 * Returns the slice of the value at a path; null when there is none. Of members with the same name the last counts,
 * as in a parser.
 */
export function locate(text: Buffer, path: JsonPath): Slice | null {
  if (path.length === 0) return wholeOf(text)
  let at = 0
  let found: Slice | null = null
  for (const step of path) {
    found = stepInto(text, at, step)
    if (found === null) return null
    at = found.start
  }
  return found
}

function wholeOf(text: Buffer): Slice {
  const start = skipSpace(text, 0)
  return { start, end: skipValue(text, start) }
}

function stepInto(text: Buffer, at: number, step: string | number): Slice | null {
  let found: Slice | null = null
  if (typeof step === 'string') {
    for (const { name, value } of membersOf(text, at)) if (name === step) found = value
    return found
  }
  let place = 0
  for (const element of elementsOf(text, at)) if (place++ === step) return element
  return null
}

/** Returns the value at a path of parsed JSON; undefined when there is none. */
export function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value
  for (const step of path) {
    if (typeof at !== 'object' || at === null) return undefined
    at = (at as Record<string | number, unknown>)[step]
  }
  return at
}
