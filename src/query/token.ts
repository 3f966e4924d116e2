import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'

const MARK_BYTES = 6

/**
 * The token of the next page: which question it goes on with, and the last id that was looked at. Ids are looked at in
 * their order, so the token stays good when the mirror has moved on to another snapshot: what was new behind the place is
 * told, what stands before it is not told again.
 */
export function writeToken(mark: string, lastId: string): string {
  return Buffer.concat([markBytes(mark), Buffer.from(lastId)]).toString('base64url')
}

/** The id behind which to go on; '' without a token. Throws `bad_request` for one of another question, or of nobody. */
export function readToken(token: string, mark: string): string {
  if (token === '') return ''
  const bytes = Buffer.from(token, 'base64url')
  const sound = bytes.toString('base64url') === token && bytes.length > MARK_BYTES
  if (sound && bytes.subarray(0, MARK_BYTES).equals(markBytes(mark)))
    return bytes.toString('utf8', MARK_BYTES)
  throw new MirrorError('bad_request', 'Invalid page token.')
}

function markBytes(mark: string): Buffer {
  return createHash('sha256').update(mark).digest().subarray(0, MARK_BYTES)
}
