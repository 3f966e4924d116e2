import { closeSync, openSync, rmSync } from 'node:fs'
import { PRIVATE_FILE, replaceFile } from '../../../base/files.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { createContentZip } from '../../scanners/small-archive.ts'
import type { Scrubber } from './scrub.ts'

/** A member of a support archive: a text as it is, anything else as JSON. */
type SupportMembers = Readonly<Record<string, unknown>>

/**
 * Writes the members, without secrets, into a new zip file, mode 0600. Throws `usage` when there is a file of this name, or
 * when it cannot be made, `storage` when it cannot be written; then nothing is left of it.
 */
export function writeSupportArchive(path: string, members: SupportMembers, scrub: Scrubber): void {
  refuseTaken(path)
  try {
    replaceFile(path, (write) => {
      const zip = createContentZip(write)
      for (const [name, content] of Object.entries(members)) {
        const text = typeof content === 'string' ? scrub.text(content) : jsonOf(scrub.value(content))
        zip.add(name, Buffer.from(`${text}\n`))
      }
      zip.finish()
    })
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    const text = `${path} cannot be written, and nothing is left of it (${messageOf(error)}): free some space, or give another place`
    throw new MirrorError('storage', text, { cause: error })
  }
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** The name is taken and given back, so that a place where no file can be made is named before any work. */
function refuseTaken(path: string): void {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_FILE))
    rmSync(path)
  } catch (error) {
    const why = systemCode(error) === 'EEXIST' ? 'there is a file of this name: give another one' : messageOf(error)
    throw new MirrorError('usage', `${path} is not written: ${why}`, { cause: error })
  }
}
