import {
  accessSync,
  closeSync,
  constants,
  fdatasync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MirrorError } from '../core/errors.ts'
import { PRIVATE_FILE } from '../core/files.ts'
import { deflatedOf } from '../core/gzip/member.ts'
import { derivedDir } from '../store/database/open.ts'
import type { ArchivePart } from '../store/osv/archive-parts.ts'
import type { ArchiveInfo, OsvReader, RecordToStore } from '../store/osv/reads.ts'
import { createSpool, createSpooledPages, writeAll } from '../zip/spool.ts'
import { type Adopted, createZipWriter } from '../zip/writer.ts'
import { checkTrailer, faultOfArchive, readRange } from './check.ts'
import { crcOfParts, createSummer, digestOfParts, startsPart } from './parts.ts'

/** An archive that was built and is not published yet. */
export interface BuiltArchive extends Omit<ArchiveInfo, 'changed'> {
  members: number
  /** The parts that were written from the store. */
  written: ArchivePart[]
  /** Whether the other parts were copied from the published archive. */
  patched: boolean
}

/** An archive that is being built. */
export interface Draft {
  /**
   * Writes the stored records from `from` (inclusive) to `before` (exclusive; null: the end) as parts. The first part
   * begins at `from`, which must be empty or the id of a stored record. Throws `proof` for a record that is not
   * `expected`.
   */
  write(from: string, before: string | null): void
  /** Begins to add records one by one, in id order: with all the parts up to `end`, and without reading the store. */
  begin(from: string): void
  add(record: DraftRecord): void
  end(): void
  /** Copies parts unchanged from another archive, which is open for reading. */
  adopt(parts: readonly ArchivePart[], members: Adopted, source: number): void
  /** Completes the file and renames it to its final name. */
  finish(meanwhile?: Meanwhile): Promise<BuiltArchive>
  /** False after `close`. */
  isOpen(): boolean
  /** Closes the file, if it is open; an unfinished one is removed. */
  close(): void
}

/** Is called with an archive while the disk still writes it; the file gets its name afterwards. */
export type Meanwhile = (built: BuiltArchive) => void

/** A record to add: its content's CRC-32 and size, and its gzip member. */
type DraftRecord = Pick<RecordToStore, 'id' | 'crc32' | 'size' | 'body'>

/** Bytes of a write, of a page of the directory, and of a copied read. */
const PIECE = 1 << 18

const synced = promisify(fdatasync)

/** Creates an unfinished archive in the derived folder. */
export function createDraft(
  store: Pick<OsvReader, 'eachContent'>,
  dir: string,
  expected: (id: string) => boolean,
): Draft {
  dropUnfinished(dir)
  const temporary = join(dir, `building-${process.pid}.zip`)
  const fd = openSync(temporary, 'w', PRIVATE_FILE)
  const spool = createSpool(join(dir, `building-${process.pid}.directory`))
  const summer = createSummer()
  const zip = createZipWriter(
    (chunk) => writeAll(fd, chunk),
    (bytes) => summer.update(bytes),
    { chunk: PIECE, pages: createSpooledPages(spool) },
  )
  const piece = Buffer.allocUnsafe(PIECE) // the system maps its pages at the first use only
  const { parts, written, begin, add, end } = createParts(zip, summer)
  let isOpen = true
  return {
    begin,
    add,
    end,
    write(from, before) {
      begin(from)
      for (const [id, crc32, size, body] of store.eachContent(from, before)) {
        if (!expected(id)) throw unlisted(id)
        checkTrailer(id, body, crc32, size)
        add({ id, crc32, size, body })
      }
      end()
    },
    adopt(adopted, members, source) {
      zip.adopt(members)
      readRange(source, members.from, members.bytes, piece, (chunk) => writeAll(fd, chunk))
      for (const part of adopted) parts.push(part)
    },
    async finish(meanwhile) {
      const counts = zip.finish()
      const sums = sumsOf(parts, summer.take())
      const built = { ...counts, ...sums, written, patched: written.length < parts.length }
      const onDisk = synced(fd)
      try {
        meanwhile?.(built)
      } finally {
        await onDisk
      }
      renameSync(temporary, join(dir, built.file))
      return built
    },
    isOpen: () => isOpen,
    close() {
      if (!isOpen) return
      isOpen = false
      closeSync(fd)
      spool.close()
      rmSync(temporary, { force: true })
    },
  }
}

/** Returns the digests of an archive, and the name that follows from them. */
function sumsOf(
  parts: readonly ArchivePart[],
  tail: Parameters<typeof digestOfParts>[1],
): Pick<BuiltArchive, 'file' | 'sha256' | 'crc32c'> {
  const sha256 = digestOfParts(parts, tail)
  return { file: `osv-${sha256.slice(0, 32)}.zip`, sha256, crc32c: crcOfParts(parts, tail) }
}

/** Adds records to an archive, part by part. */
function createParts(
  zip: ReturnType<typeof createZipWriter>,
  summer: ReturnType<typeof createSummer>,
) {
  const parts: ArchivePart[] = []
  const written: ArchivePart[] = []
  let first = ''
  let members = 0
  const begin = (from: string): void => {
    first = from
    members = 0
  }
  const end = (): void => {
    zip.show()
    const part = { first, members, ...summer.take() }
    parts.push(part)
    written.push(part)
  }
  const add = ({ id, crc32, size, body }: DraftRecord): void => {
    if (id !== first && startsPart(id)) {
      end()
      begin(id)
    }
    zip.add({ name: `${id}.json`, crc32, size, deflated: deflatedOf(body) })
    members++
  }
  return { parts, written, begin, add, end }
}

/** Returns the error for a record that is stored, or in the archive, but not listed by the index. */
export function unlisted(id: string): MirrorError {
  return new MirrorError('proof', `record ${id} is stored but not listed`)
}

/** Removes unfinished archives that a killed process left. */
function dropUnfinished(dir: string): void {
  for (const name of readdirSync(dir))
    if (name.startsWith('building-')) rmSync(join(dir, name), { force: true })
}

/**
 * Builds `all.zip` from the stored streams, members in id order: the same records give the same bytes on any mirror. The
 * file is named by its digest, so readers of the previous archive are not disturbed. Throws `proof` for a record that is
 * not `expected`.
 */
export async function buildArchive(
  store: Pick<OsvReader, 'eachContent'>,
  dir: string,
  expected: (id: string) => boolean,
  meanwhile?: Meanwhile,
): Promise<BuiltArchive> {
  const draft = createDraft(store, dir, expected)
  try {
    draft.write('', null)
    return await draft.finish(meanwhile)
  } finally {
    draft.close()
  }
}

/** Deletes derived archives except those in `keep`: the current one and the one that readers may still be opening. */
export function sweepArchives(dir: string, keep: readonly string[]): void {
  for (const name of readdirSync(dir)) {
    if (name.endsWith('.zip') && !keep.includes(name)) rmSync(join(dir, name), { force: true })
  }
}

/**
 * Rebuilds the derived archive when its file is missing or truncated (power loss, a cleaned folder), or with `thorough`
 * when any of its bytes is wrong. The archive is derived from the database alone, so the rebuilt file is identical to
 * the byte. Returns whether it was rebuilt; throws `corrupt` when the stored records no longer give the published
 * archive.
 */
export async function rebuildLostArchive(
  store: OsvReader,
  dataDir: string,
  thorough = false,
): Promise<boolean> {
  const info = store.readArchive()
  const dir = derivedDir(dataDir)
  dropUnfinished(dir)
  if (info === null) return false
  const parts = store.listParts()
  const path = join(dir, info.file)
  const sound = thorough
    ? (await faultOfArchive(path, info, parts)) === null
    : sizeOf(path) === info.size
  if (sound) return false
  const built = await buildArchive(store, dir, () => true)
  if (parts.length > 0 && built.sha256 === info.sha256) return true
  const rebuilt = join(dir, built.file)
  if ((await faultOfArchive(rebuilt, info, parts)) === null) {
    renameSync(rebuilt, path) // published by an earlier version, under another digest
    return true
  }
  rmSync(rebuilt, { force: true })
  throw new MirrorError(
    'corrupt',
    'the stored records do not make up the published archive any more: run "patchmirror verify --repair"',
  )
}

/** Returns the size of a file that this user may read; -1 for any other: a command that ran as root may have made it. */
function sizeOf(path: string): number {
  try {
    accessSync(path, constants.R_OK)
    return statSync(path).size
  } catch {
    return -1
  }
}
