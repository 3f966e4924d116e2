import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode } from '../errors.ts'
import { generationDir, readCurrentViews } from './views-place.ts'

/** The VEX repository of a generation: its archive. */
export interface VexGeneration {
  /** Folder of the generation. */
  readonly folder: string
  /** Name of the archive in it. */
  readonly file: string
  readonly size: number
  /** Hex. */
  readonly sha256: string
  readonly crc32c: number
  /** Last-Modified, unix seconds. */
  readonly changed: number
  readonly documents: number
  readonly packages: number
}

/** The file in a generation's folder that says what is in it; written last. */
export const VEX_FILE = 'repository.json'

/** The VEX repository in use; null before the first. Throws `corrupt` for one that is damaged. */
export function readVexGeneration(dataDir: string): VexGeneration | null {
  const current = readCurrentViews(dataDir, 'vex')
  if (current === null) return null
  const folder = generationDir(dataDir, current.name)
  try {
    const text = readFileSync(join(folder, VEX_FILE), 'utf8')
    return { ...(JSON.parse(text) as Omit<VexGeneration, 'folder'>), folder }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw new MirrorError('corrupt', 'the VEX repository cannot be read', { cause: error })
  }
}
