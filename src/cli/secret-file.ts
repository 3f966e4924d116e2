import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { PRIVATE_FILE } from '../base/files.ts'
import { MirrorError, messageOf, systemCode } from '../base/errors.ts'

/** A new file that only its owner may read, for a secret that is shown once. */
export type SecretFile = ReturnType<typeof createSecretFile>

/**
 * Makes the file before the secret is, so that none is lost for want of a place. One that is there already is left
 * alone, also when it is a link. Throws `usage`.
 */
export function createSecretFile(path: string) {
  const file = open(path)
  let isOpen = true
  const close = (): void => {
    if (isOpen) closeSync(file)
    isOpen = false
  }
  return {
    /** Writes the secret as a line and closes the file; throws when it is not surely on disk. */
    write(secret: string): void {
      writeFileSync(file, `${secret}\n`)
      fsyncSync(file)
      close()
    },
    /** Takes the file away again. */
    discard(): void {
      close()
      rmSync(path, { force: true })
    },
  }
}

function open(path: string): number {
  try {
    return openSync(path, 'wx', PRIVATE_FILE)
  } catch (error) {
    const taken = systemCode(error) === 'EEXIST'
    const missing = systemCode(error) === 'ENOENT' ? 'its folder does not exist: create it' : messageOf(error)
    const why = taken ? 'it exists already, and is not overwritten' : missing
    throw new MirrorError('usage', `--out ${path}: ${why}. Nothing was created.`, { cause: error })
  }
}
