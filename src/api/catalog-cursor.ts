import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'

/** An entry by which a place is found again, and what it was like then. */
export interface Anchor {
  id: string
  /** 8 hex digits of its content's digest. */
  sha: string
}

/** Where a page begins: behind the first of its anchors that is as it was. */
export interface Cursor {
  /** The last entries that were shown, the very last one first. */
  anchors: readonly Anchor[]
  /** The place of the very last one then: all there is to go by when no anchor is left. */
  ordinal: number
  value: string | number | null
}

/** Anchors of a cursor: so many neighbours would have to change or go between two pages for a place to be lost. */
export const ANCHORS = 8

/**
 * A cursor as text. It names entries, not a number of entries to skip, so a page begins where the last one ended
 * whatever a sync publishes in between. It holds for the list and the order (`made`) that it was made in.
 */
export function writeCursor({ anchors, ordinal, value }: Cursor, made: string): string {
  const named = anchors.flatMap(({ id, sha }) => [id, sha])
  return Buffer.from(JSON.stringify([markOf(made), ordinal, value, ...named])).toString('base64url')
}

/** Reads a cursor. Throws `bad_request` for anything else, and for one of another list or order. */
export function readCursor(text: string, made: string): Cursor {
  const parts = parse(text)
  if (!Array.isArray(parts)) throw foreign()
  const [mark, ordinal, value, ...named] = parts as unknown[]
  if (typeof mark !== 'string' || !Number.isSafeInteger(ordinal)) throw foreign()
  if (value !== null && typeof value !== 'string' && typeof value !== 'number') throw foreign()
  if (named.length > 2 * ANCHORS || !named.every((part) => typeof part === 'string'))
    throw foreign()
  if (mark !== markOf(made)) throw refused('belongs to another list or another order')
  const anchors: Anchor[] = []
  for (let at = 0; at + 1 < named.length; at += 2)
    anchors.push({ id: named[at] ?? '', sha: named[at + 1] ?? '' })
  return { anchors, ordinal: ordinal as number, value }
}

function markOf(made: string): string {
  return createHash('sha256').update(made).digest('base64url').slice(0, 6)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return null
  }
}

function foreign(): MirrorError {
  return refused('is not a cursor of this mirror')
}

function refused(why: string): MirrorError {
  const message = `after=… ${why}: take it from the page before, and keep the other parameters as they were`
  return new MirrorError('bad_request', message)
}
