import { messageOf } from '../errors.ts'
import { briefReason, readNamedFile } from '../files.ts'

/** Shortest secret of a file, characters: 32 hex digits are 128 bits. */
const MIN_LENGTH = 32
/** Longest file, bytes: anything longer is another file. */
const MAX_BYTES = 65_536

/**
 * Reads a file with one secret a line, in order; empty lines and lines that begin with `#` are ignored. A string says why
 * it cannot be used, and repeats nothing of it.
 */
export function readLinkSecretFile(path: string): readonly string[] | string {
  let bytes: Buffer
  try {
    bytes = readNamedFile(path)
  } catch (error) {
    return `cannot be read (${briefReason(error, messageOf(error))})`
  }
  if (bytes.length > MAX_BYTES) return `is longer than ${MAX_BYTES} bytes`
  const lines = bytes.toString('utf8').split(/\r?\n/)
  const secrets = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  if (secrets.length === 0) return 'has no secret: write one on its first line'
  const short = secrets.findIndex((secret) => secret.length < MIN_LENGTH)
  if (short >= 0)
    return `has a secret of fewer than ${MIN_LENGTH} characters (secret ${short + 1}): "openssl rand -hex 32" makes one`
  return secrets
}
