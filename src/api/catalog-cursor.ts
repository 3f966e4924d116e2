import { MirrorError } from '../errors.ts'

/** The last entry of a page: the next page begins behind it. */
export interface Cursor {
  id: string
  ordinal: number
  value: string | number | null
}

/**
 * A cursor as text. It names an entry, not a number of entries to skip, so a page begins where the last one ended
 * whatever a sync publishes in between; it holds for the order that it was made in.
 */
export function writeCursor({ id, ordinal, value }: Cursor, order: string): string {
  return Buffer.from(JSON.stringify([order, id, ordinal, value])).toString('base64url')
}

/** Reads a cursor. Throws `bad_request` for anything else, and for one of another order. */
export function readCursor(text: string, order: string): Cursor {
  const parts = parse(text)
  if (!Array.isArray(parts) || parts.length !== 4) throw refused('is not a cursor of this mirror')
  const [made, id, ordinal, value] = parts as unknown[]
  if (typeof made !== 'string' || typeof id !== 'string' || !Number.isSafeInteger(ordinal))
    throw refused('is not a cursor of this mirror')
  if (made !== order) throw refused('belongs to another order')
  if (value !== null && typeof value !== 'string' && typeof value !== 'number')
    throw refused('is not a cursor of this mirror')
  return { id, ordinal: ordinal as number, value }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return null
  }
}

function refused(why: string): MirrorError {
  const message = `after=… ${why}: take it from the page before, and keep the other parameters as they were`
  return new MirrorError('bad_request', message)
}
