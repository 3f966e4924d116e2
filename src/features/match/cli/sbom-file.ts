import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError, whyUnreadable } from '../../../base/errors.ts'
import { readInput } from '../../../base/files.ts'
import { readInputSbom, sbomTooLarge } from '../../../documents/sboms/read.ts'
import { type InputSbom, SBOM_BOUNDS, unreadable } from '../../../documents/sboms/sbom.ts'

/**
 * Reads an SBOM from a file, or from standard input for `-`. Throws `usage` for a file that cannot be read, `bad_request` for
 * what is too large or no SBOM.
 */
export async function readSbomFile(file: string): Promise<InputSbom> {
  const bytes = await readBytes(file)
  return { ...readInputSbom(bytes), digest: sha256Hex(bytes) }
}

async function readBytes(file: string): Promise<Buffer> {
  let bytes: Buffer | null
  try {
    bytes = await readInput(file, SBOM_BOUNDS.bytes)
  } catch (error) {
    const what = file === '-' ? 'standard input' : file
    const why = file.startsWith('pkg:') ? `an SBOM is wanted; "patchmirror show ${file}" is about a package` : null
    throw new MirrorError('usage', `${what} cannot be read: ${why ?? whyUnreadable(error)}`)
  }
  if (bytes === null) throw unreadable(sbomTooLarge())
  return bytes
}
