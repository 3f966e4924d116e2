import { createReadStream } from 'node:fs'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError, whyUnreadable } from '../../../base/errors.ts'
import { readInputSbom, sbomTooLarge } from '../../../documents/sboms/read.ts'
import { type InputSbom, SBOM_BOUNDS, unreadable } from '../../../documents/sboms/sbom.ts'

/** Bytes of a read. */
const PIECE = 2 ** 20

/**
 * Reads an SBOM from a file, or from standard input for `-`. Throws `usage` for a file that cannot be read, `bad_request` for
 * what is too large or no SBOM.
 */
export async function readSbomFile(file: string): Promise<InputSbom> {
  const bytes = await readInput(file)
  return { ...readInputSbom(bytes), digest: sha256Hex(bytes) }
}

/** Reads no further than the bound, whatever it is: a pipe or a device has no size, and may have no end. */
async function readInput(file: string): Promise<Buffer> {
  const source = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: PIECE })
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size > SBOM_BOUNDS.bytes) throw unreadable(sbomTooLarge())
    }
  } catch (error) {
    if (error instanceof MirrorError) throw error
    const what = file === '-' ? 'standard input' : file
    const why = file.startsWith('pkg:') ? `an SBOM is wanted; "patchmirror show ${file}" is about a package` : null
    throw new MirrorError('usage', `${what} cannot be read: ${why ?? whyUnreadable(error)}`)
  }
  return Buffer.concat(chunks)
}
