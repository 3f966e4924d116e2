import { existsSync, readdirSync } from 'node:fs'
import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { digestOfChunks } from '../../../base/digest.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { partName, partNumber, sidecarName } from '../format/split-names.ts'
import { PRIVATE_FILE } from '../../../base/files.ts'
import { type Temporary, makeTemporary } from '../../../store/temporary.ts'

/** A file, or its parts, written in another folder on the same disk. */
export type OutputFile = ReturnType<typeof createTarget>

/** Options of an output file. */
export interface TargetOptions {
  /** Bytes of a part; null for one file. */
  readonly split: number | null
  /** Whether a file of this name may be replaced. */
  readonly force: boolean
  /** A folder on the same disk for what is not complete, which the caller removes; not given: one is made beside the file. */
  readonly staging?: string
}

const MAX_PARTS = 999

/**
 * Creates an output file that gets its name only when it is complete. Throws `usage` if the name exists and `force` is
 * not set, `storage` if it cannot be written.
 */
export function createTarget(path: string, { split, force, staging }: TargetOptions) {
  const there = namesTaken(path)
  if (there[0] !== undefined && !force)
    throw new MirrorError('usage', `${there[0]} exists already; --force replaces it`)
  const files: FileHandle[] = []
  const final = (i: number): string => (split === null ? path : partName(path, i + 1))
  const { draftOf, remove } = createDrafts(path, staging)
  const drafts = (): string[] => files.map((_, i) => draftOf(final(i)))

  const fileAt = async (i: number): Promise<FileHandle> => {
    while (files.length <= i) {
      if (files.length >= MAX_PARTS) throw new MirrorError('usage', `over ${MAX_PARTS} parts: give a larger --split`)
      files.push(await open(draftOf(final(files.length)), 'wx', PRIVATE_FILE))
    }
    const file = files[i]
    if (file === undefined) throw new RangeError(`no part ${i}`)
    return file
  }

  return {
    /** Writes bytes at a position of the whole; positions after the end extend it. */
    async write(position: number, bytes: Uint8Array): Promise<void> {
      await named(path, async () => {
        for (let from = 0; from < bytes.length;) {
          const at = position + from
          const i = split === null ? 0 : Math.floor(at / split)
          const room = split === null ? bytes.length : split - (at % split)
          const piece = bytes.subarray(from, from + room)
          await writeAll(await fileAt(i), piece, split === null ? at : at % split)
          from += piece.length
        }
      })
    },
    /** Syncs and closes all files; returns them under their temporary names, in order. */
    settle: (): Promise<string[]> =>
      named(path, async () => {
        for (const file of files) {
          await file.sync()
          await file.close()
        }
        return drafts()
      }),
    /** Renames the files, replacing earlier ones. Returns their final names, the list of digests last. */
    publish: (): Promise<string[]> =>
      named(path, async () => {
        const sums = split === null ? null : await digestsOf(drafts(), final)
        if (!force && namesTaken(path).length > 0)
          throw new MirrorError('usage', `${path} was created by another process meanwhile`)
        const names = files.map((_, i) => final(i))
        await replace(path, names, draftOf)
        if (sums !== null) await writeFile(sidecarName(path), sums, { flush: true, mode: PRIVATE_FILE })
        await syncFolder(dirname(resolve(path)))
        remove()
        return sums === null ? names : [...names, sidecarName(path)]
      }),
    /** Removes what was written. */
    async discard(): Promise<void> {
      for (const file of files) await file.close().catch(() => undefined)
      for (const draft of drafts()) await rm(draft, { force: true })
      remove()
    },
  }
}

/** Creates what names the files while they are not complete; their folder is made for the first of them, unless one is given. */
function createDrafts(path: string, given: string | undefined) {
  let own: Temporary | null = null
  const folder = (): string => given ?? (own ??= makeTemporary(dirname(resolve(path)))).folder
  return {
    draftOf: (name: string): string => join(folder(), basename(name)),
    remove: (): void => own?.remove(),
  }
}

/** Renames the temporary files, and removes remaining files of an older bundle of this name. */
async function replace(path: string, names: readonly string[], draftOf: (name: string) => string): Promise<void> {
  await rm(sidecarName(path), { force: true }) // it does not describe the new files
  const old = namesTaken(path)
  for (const name of names) await rename(draftOf(name), name)
  const own = new Set(names.map((name) => resolve(name)))
  for (const name of old) if (!own.has(name)) await rm(name, { force: true })
}

/** Returns existing files of a bundle of this name: the file, parts, the list of digests. */
function namesTaken(path: string): string[] {
  const folder = dirname(resolve(path))
  const base = basename(path)
  const listed = existsSync(folder) ? readdirSync(folder) : []
  const own = listed.filter((name) => partNumber(name, base) !== null)
  const names = [base, ...own.sort(), sidecarName(base)].map((name) => join(folder, name))
  return names.filter((name) => existsSync(name))
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const left = bytes.length - done
    const { bytesWritten } = await file.write(bytes, done, left, position + done)
    done += bytesWritten
  }
}

/** Builds a list of digests in the format of `sha256sum`, for `sha256sum -c`. */
async function digestsOf(drafts: readonly string[], final: (i: number) => string): Promise<string> {
  const lines: string[] = []
  for (const [i, draft] of drafts.entries()) lines.push(`${await digestOfFile(draft)}  ${basename(final(i))}\n`)
  return lines.join('')
}

/** Returns the SHA-256 of a file, hex. */
export async function digestOfFile(path: string): Promise<string> {
  const file = await open(path, 'r')
  return digestOfChunks(file.createReadStream({ highWaterMark: 1 << 20 }))
}

/** Makes names durable after a power loss; some file systems of removable media do not support it. */
async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r')
    await folder.sync().finally(() => folder.close())
  } catch {
    return
  }
}

async function named<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof MirrorError || systemCode(error) === undefined) throw error
    const full = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error) ?? '')
    const what = full
      ? 'the disk is full, or the file is too large for it (a FAT medium takes files up to 4 GB: use --split)'
      : messageOf(error)
    throw new MirrorError('storage', `${path} cannot be written: ${what}`, { cause: error })
  }
}
