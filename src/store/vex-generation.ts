import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode } from '../errors.ts'
import { generationDir, readCurrentViews } from './views-place.ts'

/** What a generation's folder says of its VEX repository. */
export interface VexInfo {
  /** Name of the archive in the folder. */
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

/** The VEX repository of a generation: its archive, and the catalog's snapshot that it shows. */
export interface VexGeneration extends VexInfo {
  /** Folder of the generation. */
  readonly folder: string
  readonly snapshot: string
  /** Upstream's date of the VEX in that snapshot, unix milliseconds. */
  readonly asOf: number
}

/** The file in a generation's folder that says what is in it; written last. */
export const VEX_FILE = 'repository.json'

/**
 * The VEX repository in use; null before the first, and while it does not say which snapshot it shows (an earlier version
 * made it). Throws `corrupt` for one that is damaged.
 */
export function readVexGeneration(dataDir: string): VexGeneration | null {
  const current = readCurrentViews(dataDir, 'vex')
  if (current === null || current.asOf === null) return null
  const { name, snapshot, asOf } = current
  const folder = generationDir(dataDir, name)
  const info = readVexInfo(folder)
  return info === null ? null : { ...info, folder, snapshot, asOf }
}

/** What is in a generation's folder; null when it is not there. Throws `corrupt`. */
export function readVexInfo(folder: string): VexInfo | null {
  try {
    return JSON.parse(readFileSync(join(folder, VEX_FILE), 'utf8')) as VexInfo
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw new MirrorError('corrupt', 'the VEX repository cannot be read', { cause: error })
  }
}
