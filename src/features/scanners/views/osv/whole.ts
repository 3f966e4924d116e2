import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { ViewPart } from '../../store/member-writes.ts'
import { type ClosedDraft, type MadeFile, linkFile } from '../files.ts'
import { openOldArchive } from './source.ts'

/** The published archive under its name in the bucket: another name for the mirror's own file. */
export const WHOLE = 'all.zip'

/**
 * Whether a view's archive of a generation is the published one: in a feed of one vendor, that vendor's folder has every
 * record as it is published.
 */
export function isSharedArchive(folder: string, file: string): boolean {
  const [one, other] = [file, WHOLE].map((name) => statSync(join(folder, name), { throwIfNoEntry: false }))
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev
}

/**
 * Begins an archive that may have the published one's bytes: as long as it has, they are compared and not written, and at the end it
 * is another name of that file. Otherwise it becomes `own`, which gets all bytes.
 */
export function createSharedDraft(folder: string, own: ClosedDraft): ClosedDraft {
  const path = join(folder, WHOLE)
  const digest = createHash('sha256')
  let size = 0
  let isSame = true
  const part = (): void => {
    isSame = false
    for (let at = 0; at < size; at += STEP) own.write(readAt(path, at, Math.min(STEP, size - at)))
  }
  return {
    write(chunk) {
      if (isSame && !readAt(path, size, chunk.length).equals(chunk)) part()
      if (!isSame) return own.write(chunk)
      digest.update(chunk)
      size += chunk.length
    },
    finish(crc32c) {
      if (isSame && statSync(path).size !== size) part()
      return isSame ? linkWhole(folder, { size, sha256: digest.digest('hex'), crc32c }) : own.finish(crc32c)
    },
  }
}

const STEP = 1 << 16

/** Returns bytes of a file; fewer where it ends. */
function readAt(path: string, at: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  const fd = openSync(path, 'r')
  try {
    return bytes.subarray(0, readSync(fd, bytes, 0, length, at))
  } finally {
    closeSync(fd)
  }
}

function linkWhole(folder: string, made: Omit<MadeFile, 'file'>): MadeFile {
  const file = `${made.sha256.slice(0, 32)}.zip`
  linkFile(join(folder, WHOLE), join(folder, file))
  return { file, ...made }
}

/** An archive of which only the parts are computed. */
export function createPlan(): ClosedDraft {
  return {
    write: () => undefined,
    finish: (crc32c) => ({ file: '', size: 0, sha256: '', crc32c }),
  }
}

/** Names the published archive as a view's, if it has exactly these parts: compares the CRC-32 of each. Null if it has not. */
export function adoptWhole(folder: string, parts: readonly ViewPart[], crc32c: number): MadeFile | null {
  const whole = join(folder, WHOLE)
  const size = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  const source = statSync(whole).size === size ? openOldArchive(whole) : null
  if (source === null) return null
  const digest = createHash('sha256')
  try {
    for (const part of parts) if (!source.isSound(part, (bytes) => void digest.update(bytes))) return null
  } finally {
    source.close()
  }
  return linkWhole(folder, { size, sha256: digest.digest('hex'), crc32c })
}
