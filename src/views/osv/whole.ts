import { closeSync, openSync, rmSync, statSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { digestOfOpenFile } from '../../core/digest.ts'
import type { ViewPart } from '../../store/views/member-writes.ts'
import { type ClosedDraft, type MadeFile, linkFile } from '../files.ts'
import { openOldArchive } from './source.ts'

/** The published archive under its name in the bucket: another name for the mirror's own file. */
export const WHOLE = 'all.zip'

/**
 * Whether a view's archive of a generation is the published one: in a feed of one vendor, that vendor's folder has every
 * record as it is published.
 */
export function isSharedArchive(folder: string, file: string): boolean {
  const [one, other] = [file, WHOLE].map((name) =>
    statSync(join(folder, name), { throwIfNoEntry: false }),
  )
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev
}

/** Makes an archive another name for the published one where their bytes are the same, so that they are on the disk once. */
export function shareWhole(folder: string, made: MadeFile): void {
  const whole = join(folder, WHOLE)
  if (statSync(whole).size !== made.size || digestOf(whole) !== made.sha256) return
  rmSync(join(folder, made.file))
  linkFile(whole, join(folder, made.file))
}

function digestOf(path: string): string {
  const fd = openSync(path, 'r')
  try {
    return digestOfOpenFile(fd)
  } finally {
    closeSync(fd)
  }
}

/** An archive of which only the parts are computed. */
export function createPlan(): ClosedDraft {
  return {
    write: () => undefined,
    finish: (crc32c) => ({ file: '', size: 0, sha256: '', crc32c }),
  }
}

/** Names the published archive as a view's, if it has exactly these parts: compares the CRC-32 of each. Null if it has not. */
export function adoptWhole(
  folder: string,
  parts: readonly ViewPart[],
  crc32c: number,
): MadeFile | null {
  const whole = join(folder, WHOLE)
  const size = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  const source = statSync(whole).size === size ? openOldArchive(whole) : null
  if (source === null) return null
  const digest = createHash('sha256')
  try {
    for (const part of parts)
      if (!source.isSound(part, (bytes) => void digest.update(bytes))) return null
  } finally {
    source.close()
  }
  const sha256 = digest.digest('hex')
  const file = `${sha256.slice(0, 32)}.zip`
  linkFile(whole, join(folder, file))
  return { file, size, sha256, crc32c }
}
