import { closeSync, fdatasync, openSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MirrorError } from '../base/errors.ts'
import { PRIVATE_FILE, writeAll } from '../base/files.ts'
import { deflatedOf } from '../base/gzip/member.ts'
import type { ArchivePart } from '../store/osv/archive-parts.ts'
import type { ArchiveInfo, OsvReader, RecordToStore } from '../store/osv/reads.ts'
import { createSpool, createSpooledPages } from './zip/spool.ts'
import { type Adopted, createZipWriter } from './zip/writer.ts'
import { checkTrailer, readRange } from './check.ts'
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
export type Draft = ReturnType<typeof createDraft>

/** Is called with an archive while the disk still writes it; the file gets its name afterwards. */
export type Meanwhile = (built: BuiltArchive) => void

/** A record to add: its content's CRC-32 and size, and its gzip member. */
type DraftRecord = Pick<RecordToStore, 'id' | 'crc32' | 'size' | 'body'>

/** A member to add: the id of its record, its content's CRC-32 and size, and its deflate stream. */
interface ArchiveMember extends Pick<RecordToStore, 'id' | 'crc32' | 'size'> {
  readonly deflated: Uint8Array
}

/** Bytes of a write, of a page of the directory, and of a copied read. */
const PIECE = 1 << 18

const synced = promisify(fdatasync)

/** Creates an unfinished archive in the derived folder. */
export function createDraft(store: Pick<OsvReader, 'eachContent'>, dir: string, expected: (id: string) => boolean) {
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
  const addExpected = (member: ArchiveMember): void => {
    if (!expected(member.id)) throw unlisted(member.id)
    add(member)
  }
  let isOpen = true
  return {
    /** Begins to add records, in id order: with all the parts up to `end`. The first part begins at `from`, which must be empty or the id of the first record. */
    begin,
    /** Adds a record without reading the store. */
    add: (record: DraftRecord): void => add(memberOf(record)),
    /** Adds the stored records from `from` (inclusive) to `before` (exclusive; null: the end). Throws `proof` for one that is not `expected`. */
    addStored: (from: string, before: string | null): void => eachStored(store.eachContent(from, before), addExpected),
    end,
    /** Copies parts unchanged from another archive, which is open for reading. Returns the bytes of their entries. */
    adopt(adopted: readonly ArchivePart[], members: Adopted, source: number): number {
      const used = zip.adopt(members)
      readRange(source, members.from, members.bytes, piece, (chunk) => writeAll(fd, chunk))
      for (const part of adopted) parts.push(part)
      return used
    },
    /** Completes the file and renames it to its final name. */
    async finish(meanwhile?: Meanwhile): Promise<BuiltArchive> {
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
    /** False after `close`. */
    isOpen: (): boolean => isOpen,
    /** Closes the file, if it is open; an unfinished one is removed. */
    close(): void {
      if (!isOpen) return
      isOpen = false
      closeSync(fd)
      spool.close()
      rmSync(temporary, { force: true })
    },
  }
}

/** Calls `use` with each stored record. Throws `proof` for damaged bytes. */
function eachStored(rows: ReturnType<OsvReader['eachContent']>, use: (member: ArchiveMember) => void): void {
  for (const [id, crc32, size, body] of rows) {
    checkTrailer(id, body, crc32, size)
    use(memberOf({ id, crc32, size, body }))
  }
}

function memberOf({ id, crc32, size, body }: DraftRecord): ArchiveMember {
  return { id, crc32, size, deflated: deflatedOf(body) }
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
function createParts(zip: ReturnType<typeof createZipWriter>, summer: ReturnType<typeof createSummer>) {
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
  const add = ({ id, crc32, size, deflated }: ArchiveMember): void => {
    if (id !== first && startsPart(id)) {
      end()
      begin(id)
    }
    zip.add({ name: `${id}.json`, crc32, size, deflated })
    members++
  }
  return { parts, written, begin, add, end }
}

/** Returns the error for a record that is stored, or in the archive, but not listed by the index. */
export function unlisted(id: string): MirrorError {
  return new MirrorError('proof', `record ${id} is stored but not listed`)
}

/** Removes unfinished archives that a killed process left. */
export function dropUnfinished(dir: string): void {
  for (const name of readdirSync(dir)) if (name.startsWith('building-')) rmSync(join(dir, name), { force: true })
}
