import { createHash } from 'node:crypto'
import { closeSync, copyFileSync, linkSync, openSync, readSync, readdirSync, renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOfOpenFile } from '../../../base/digest.ts'
import { systemCode } from '../../../base/errors.ts'
import { crc32c } from '../../../archive/zip/crc32c.ts'
import { PRIVATE_FILE, writeAll } from '../../../base/files.ts'

/** A file of a generation: its name begins with the first 32 digits of its digest. */
export interface MadeFile {
  readonly file: string
  readonly size: number
  /** Hex. */
  readonly sha256: string
  readonly crc32c: number
}

/** A file in the making. */
export type FileDraft = ReturnType<typeof createFileDraft>

/** Begins a file in `folder`; `ending` such as `.zip`. */
export function createFileDraft(folder: string, ending: string) {
  const temporary = join(folder, `unfinished${ending}`)
  const fd = openSync(temporary, 'w', PRIVATE_FILE)
  const digest = createHash('sha256')
  let size = 0
  let crc = 0
  let open = true
  const close = (): void => {
    if (open) closeSync(fd)
    open = false
  }
  return {
    write(chunk: Uint8Array): void {
      writeAll(fd, chunk)
      digest.update(chunk)
      crc = crc32c(chunk, crc)
      size += chunk.length
    },
    /** Ends it, and names it by its content. */
    finish(): MadeFile {
      close()
      const sha256 = digest.digest('hex')
      return { file: named(folder, temporary, sha256, ending), size, sha256, crc32c: crc }
    },
    /** Closes it, finished or not. */
    close,
  }
}

/** A file in the making that takes no descriptor between two writes, so that there may be a thousand of them. */
export interface ClosedDraft {
  write(chunk: Uint8Array): void
  /** Ends it, and names it by its content; the caller has its CRC-32C. */
  finish(crc32c: number): MadeFile
}

/** Begins such a file, under a name that the caller chooses until it has its own. */
export function createClosedDraft(folder: string, name: string, ending: string): ClosedDraft {
  const temporary = join(folder, name + ending)
  const digest = createHash('sha256')
  let size = 0
  return {
    write(chunk) {
      const fd = openSync(temporary, size === 0 ? 'w' : 'a', PRIVATE_FILE)
      try {
        writeAll(fd, chunk)
      } finally {
        closeSync(fd)
      }
      digest.update(chunk)
      size += chunk.length
    },
    finish(crc) {
      const sha256 = digest.digest('hex')
      return { file: named(folder, temporary, sha256, ending), size, sha256, crc32c: crc }
    },
  }
}

/** Renames a finished file by its digest; returns the name. */
function named(folder: string, temporary: string, sha256: string, ending: string): string {
  const file = `${sha256.slice(0, 32)}${ending}`
  renameSync(temporary, join(folder, file))
  return file
}

/** Brings all files of a folder, and the folder itself, to the disk: together, which takes little more than one. */
export async function syncAll(folder: string): Promise<void> {
  const paths = [folder, ...readdirSync(folder).map((name) => join(folder, name))]
  await Promise.all(
    paths.map(async (path) => {
      const file = await open(path, 'r')
      try {
        await file.sync()
      } finally {
        await file.close()
      }
    }),
  )
}

const WINDOW = 1 << 20

/** Reports whether a file has the digest in its name. False also when it cannot be read. */
export function isSoundFile(folder: string, file: string): boolean {
  try {
    const fd = openSync(join(folder, file), 'r')
    try {
      return digestOfOpenFile(fd).slice(0, 32) === file.split('.', 1)[0]
    } finally {
      closeSync(fd)
    }
  } catch {
    return false
  }
}

/** Gives a file a second name: a hard link, or a copy where the file system has none. */
export function linkFile(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EEXIST') return
    if (code === 'ENOENT') throw error
    copyFileSync(from, to)
  }
}

/** Reads consecutive pieces of a file through a window; each is valid until the next is read. */
export function createPieces(path: string): {
  read(offset: number, length: number): Buffer
  close(): void
} {
  const fd = openSync(path, 'r')
  let window = Buffer.allocUnsafe(WINDOW)
  let from = 0
  let filled = 0
  return {
    read(offset, length) {
      if (offset < from || offset + length > from + filled) {
        if (length > window.length) window = Buffer.allocUnsafe(length)
        filled = readSync(fd, window, 0, window.length, offset)
        from = offset
        if (filled < length) throw new Error(`${path} ends before its end`)
      }
      return window.subarray(offset - from, offset - from + length)
    },
    close: () => closeSync(fd),
  }
}
