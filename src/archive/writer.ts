import { closeSync, fdatasync, openSync, readdirSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MirrorError } from '../core/errors.ts'
import { deflatedOf } from '../store/database/gzip.ts'
import type { ArchiveInfo, OsvReader } from '../store/osv/reads.ts'
import type { ArchivePart } from '../store/osv/archive-parts.ts'
import { type Adopted, createZipWriter } from '../zip/writer.ts'
import { readRange } from './check.ts'
import { crcOfParts, createSummer, digestOfParts, startsPart } from './parts.ts'
import { PRIVATE_FILE } from '../core/files.ts'

/** An archive that was built and not yet published. */
export interface BuiltArchive extends Omit<ArchiveInfo, 'changed'> {
  members: number
  /** Its parts that were written anew. */
  written: ArchivePart[]
  /** The other parts are the published archive's. */
  patched: boolean
}

/** An archive in the making. */
export interface Draft {
  /**
   * Writes the stored records from `from` (inclusive) to `before` (null: the end) as parts. The first part begins at
   * `from`, which must be empty or the id of a record that is stored. Throws `proof` for a record that is not `expected`.
   */
  write(from: string, before: string | null): void
  /** Takes parts over as they lie in another archive, open for reading. */
  adopt(parts: readonly ArchivePart[], members: Adopted, source: number): void
  /** Ends the file and gives it its name. */
  finish(): Promise<BuiltArchive>
  /** Closes it; an unfinished file is removed. */
  close(): void
}

/** Copied at a time. */
const PIECE = 1 << 18

const synced = promisify(fdatasync)

/** Begins an archive in the derived folder. */
export function createDraft(
  store: Pick<OsvReader, 'eachContent'>,
  dir: string,
  expected: (id: string) => boolean,
): Draft {
  dropUnfinished(dir)
  const temporary = join(dir, `building-${process.pid}.zip`)
  const fd = openSync(temporary, 'w', PRIVATE_FILE)
  const summer = createSummer()
  const zip = createZipWriter(
    (chunk) => writeAll(fd, chunk),
    (bytes) => summer.update(bytes),
  )
  const piece = Buffer.allocUnsafe(PIECE) // untouched, and so no memory, until something is adopted
  const parts: ArchivePart[] = []
  const written: ArchivePart[] = []
  const endPart = (first: string, members: number): void => {
    zip.show()
    const part = { first, members, ...summer.take() }
    parts.push(part)
    written.push(part)
  }
  return {
    write(from, before) {
      let first = from
      let members = 0
      for (const [id, crc32, size, body] of store.eachContent(from, before)) {
        if (!expected(id)) throw unlisted(id)
        checkTrailer(id, body, crc32, size)
        if (id !== first && startsPart(id)) {
          endPart(first, members)
          first = id
          members = 0
        }
        zip.add({ name: `${id}.json`, crc32, size, deflated: deflatedOf(body) })
        members++
      }
      endPart(first, members)
    },
    adopt(adopted, members, source) {
      zip.adopt(members)
      readRange(source, members.from, members.bytes, piece, (chunk) => writeAll(fd, chunk))
      for (const part of adopted) parts.push(part)
    },
    async finish() {
      const { size, members } = zip.finish()
      const tail = summer.take()
      await synced(fd)
      const sha256 = digestOfParts(parts, tail)
      const file = `osv-${sha256.slice(0, 32)}.zip`
      renameSync(temporary, join(dir, file))
      const patched = written.length < parts.length
      return { file, size, crc32c: crcOfParts(parts, tail), sha256, members, written, patched }
    },
    close() {
      closeSync(fd)
      rmSync(temporary, { force: true })
    },
  }
}

function writeAll(fd: number, chunk: Uint8Array): void {
  for (let at = 0; at < chunk.length;) at += writeSync(fd, chunk, at)
}

/** A record is stored, or in the archive, that the index does not list. */
export function unlisted(id: string): MirrorError {
  return new MirrorError('proof', `record ${id} is stored but not listed`)
}

/** The stored bytes' own checksum must be the record's: another's bytes, or cut ones, must not reach a reader. */
function checkTrailer(id: string, body: Buffer, crc32: number, size: number): void {
  const sound =
    body.length >= 18 &&
    body.readUInt32LE(body.length - 8) === crc32 &&
    body.readUInt32LE(body.length - 4) === size
  if (sound) return
  throw new MirrorError(
    'proof',
    `the stored bytes of record ${id} are not its own: run "patchmirror verify --repair"`,
  )
}

/** Removes what a killed process left half built. */
export function dropUnfinished(dir: string): void {
  for (const name of readdirSync(dir))
    if (name.startsWith('building-')) rmSync(join(dir, name), { force: true })
}
