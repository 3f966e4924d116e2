import { readFileSync, statSync } from 'node:fs'
import { MirrorError, whyUnreadable } from '../../core/errors.ts'
import { readInputSbom, sbomTooLarge } from '../../match/read.ts'
import { type InputSbom, SBOM_BOUNDS, unreadable } from '../../match/sbom.ts'

/**
 * Reads an SBOM from a file, or from standard input for `-`. Throws `usage` for a file that cannot be read, `bad_request` for
 * what is too large or no SBOM.
 */
export async function readSbomFile(file: string): Promise<InputSbom> {
  return readInputSbom(await readInput(file))
}

async function readInput(file: string): Promise<Buffer> {
  if (file === '-') return readStandardInput()
  try {
    if (statSync(file).size > SBOM_BOUNDS.bytes) throw unreadable(sbomTooLarge())
    return readFileSync(file)
  } catch (error) {
    if (error instanceof MirrorError) throw error
    throw new MirrorError('usage', `${file} cannot be read: ${whyUnreadable(error)}`)
  }
}

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > SBOM_BOUNDS.bytes) throw unreadable(sbomTooLarge())
  }
  return Buffer.concat(chunks)
}
