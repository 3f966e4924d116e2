import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { MirrorError, messageOf, systemCode } from '../errors.ts'

/** A new file that only its owner may read, for a secret that is shown once. */
export interface SecretFile {
  /** Writes the text and closes the file; throws when it is not surely on disk. */
  write(text: string): void
  /** Takes the file away again. */
  discard(): void
}

/**
 * Makes the file before the secret is, so that none is lost for want of a place. One that is there already is left
 * alone, also when it is a link. Throws `usage`.
 */
export function createSecretFile(path: string): SecretFile {
  const file = open(path)
  return {
    write(text) {
      writeSync(file, text)
      fsyncSync(file)
      closeSync(file)
    },
    discard: () => rmSync(path, { force: true }),
  }
}

function open(path: string): number {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    const what = systemCode(error) === 'EEXIST' ? 'is there already' : 'cannot be made'
    const message = `--out: ${path} ${what}; name a new file (${messageOf(error)})`
    throw new MirrorError('usage', message, { cause: error })
  }
}
