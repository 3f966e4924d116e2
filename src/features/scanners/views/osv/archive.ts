import { crc32 } from 'node:zlib'
import type { ViewPart } from '../../store/member-writes.ts'
import { combineCrc32c, crc32c } from '../../../../archive/zip/crc32c.ts'
import { type Spool, createSpooledPages } from '../../../../archive/zip/spool.ts'
import { type ZipMember, createZipWriter } from '../../../../archive/zip/writer.ts'
import type { ClosedDraft, MadeFile } from '../files.ts'

/** A member to write: its record's number and its zip member. */
interface ArchiveMember extends ZipMember {
  readonly num: number
}

/** A view's archive in the making: members in id order, so that equal records give equal bytes on any mirror. */
export interface ArchiveDraft {
  /** Adds a member; returns the position of its stream in its part. */
  add(member: ArchiveMember): number
  /** Adds neighbouring parts of the archive before, with the entries of their members in that one's directory; they are changed. */
  adopt(parts: readonly ViewPart[], entries: Buffer, bytes: Buffer): void
  finish(): MadeFile
}

/** Where an archive is made. */
interface ArchiveOptions {
  readonly file: ClosedDraft
  /** Takes the directory until the members are written. */
  readonly spool: Spool
  /** Takes each part when it is complete; the last one is the directory. */
  readonly onPart: (part: ViewPart) => void
}

/** Bytes of a part, unless a single member has more. */
const PART = 1 << 15
/** Bytes of each archive that are in memory: a bucket has up to a thousand of them. */
const CHUNK = 1 << 15

const NONE = { members: 0, bytes: 0, entries: 0, crc32: 0, crc32c: 0 }

/** Begins an archive. It is written in parts, each with its sums, so that the next generation reuses the unchanged ones. */
export function createArchiveDraft(options: ArchiveOptions): ArchiveDraft {
  const { file, onPart } = options
  const zip = createZipWriter((chunk) => file.write(chunk), look, {
    chunk: CHUNK,
    pages: createSpooledPages(options.spool),
  })
  let part = { ...NONE }
  let first = 0
  let at = 0
  let crc = 0 // of everything before the part

  function look(bytes: Uint8Array): void {
    part.bytes += bytes.length
    part.crc32 = crc32(bytes, part.crc32)
    part.crc32c = crc32c(bytes, part.crc32c)
  }
  const put = (complete: ViewPart): void => {
    onPart(complete)
    at += complete.bytes
    crc = combineCrc32c(crc, complete.crc32c, complete.bytes)
  }
  const close = (): void => {
    zip.show()
    if (part.members > 0) put({ ...part, first, at })
    part = { ...NONE }
  }
  let end = 0 // of the last member's stream
  return {
    add(member) {
      if (end - at >= PART) close()
      if (part.members++ === 0) first = member.num
      const place = zip.add(member)
      end = place + member.deflated.length
      part.entries += ENTRY + Buffer.byteLength(member.name)
      return place - at
    },
    adopt(parts, entries, bytes) {
      close()
      const sums = { count: 0, bytes: 0 }
      for (const old of parts) {
        sums.count += old.members
        sums.bytes += old.bytes
      }
      zip.adopt({ ...sums, from: parts[0]?.at ?? 0, entries })
      file.write(bytes)
      for (const old of parts) put({ ...old, at })
      end = at
    },
    finish() {
      close()
      zip.finish()
      put({ ...part, first: LAST, at })
      return file.finish(crc)
    },
  }
}

/** Bytes of an entry of the directory without its name, in an archive under 4 GiB. */
const ENTRY = 46
/** After the number of any record: the part that has the directory. */
const LAST = Number.MAX_SAFE_INTEGER
