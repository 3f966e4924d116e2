import { MirrorError } from '../../base/errors.ts'
import type { LogSpan } from '../../store/changes/log.ts'

const FOREIGN = 'after=… is not a cursor of this page: take it from the field next of the page before'

/** Encodes a position in a list of changes. It names both ends of the list, so its pages belong together across commits. */
export function writeChangeCursor(after: number, until: number, name: string): string {
  return Buffer.from(JSON.stringify([after, until, name])).toString('base64url')
}

/** Reads a cursor; null when none is given. Throws `bad_request` for one of another page. */
export function readChangeCursor(given: string | null): (Omit<LogSpan, 'source'> & { name: string }) | null {
  if (given === null) return null
  const [after, until, name] = parse(given)
  if (!isId(after) || !isId(until) || typeof name !== 'string') throw new MirrorError('bad_request', FOREIGN)
  return { after, until, name }
}

function parse(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
