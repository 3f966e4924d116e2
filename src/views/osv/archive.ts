import type { OsvReader } from '../../store/osv/reads.ts'
import { deflatedOf } from '../../store/database/gzip.ts'
import { type PlacedMember, type ViewsWriter, spooledAt } from '../../store/views/writes.ts'
import { createZipWriter } from '../../zip/writer.ts'
import { type MadeFile, createFileDraft } from '../files.ts'
import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { PRIVATE_FILE } from '../../core/files.ts'

/** Where a view's archive is made from. */
interface ArchiveOptions {
  readonly folder: string
  readonly views: ViewsWriter
  readonly view: number
  /** The archive of the generation before, for members that did not change; null when there is none. */
  readonly before: { read(offset: number, length: number): Buffer } | null
  readonly spool: Spool
  readonly reads: Pick<OsvReader, 'readRecord'>
  readonly pause: () => Promise<void>
}

const PAGE = 1000

/**
 * Writes the archive of a view, members in id order: the streams of upstream's records as they are stored, so that equal
 * records give equal bytes on any mirror; of derived ones as they were made. Each member's row learns its place.
 */
export async function writeViewArchive(options: ArchiveOptions): Promise<MadeFile> {
  const { folder, views, view, pause } = options
  const file = createFileDraft(folder, '.zip')
  try {
    const zip = createZipWriter((chunk) => file.write(chunk))
    for (let after = ''; ;) {
      const page = views.listMembers(view, after, PAGE)
      const last = page.at(-1)
      if (last === undefined) break
      after = last.id
      for (const member of page) {
        const { id, crc32, size } = member
        const deflated = streamOf(options, member)
        const place = zip.add({ name: `${id}.json`, crc32, size, deflated })
        if (place !== member.place) views.placeMember(view, id, place)
      }
      await pause()
    }
    zip.finish()
    return file.finish()
  } finally {
    file.close()
  }
}

function streamOf({ before, spool, reads }: ArchiveOptions, member: PlacedMember): Buffer {
  const { id, place, length } = member
  if (place >= 0 && before !== null) return before.read(place, length)
  const at = spooledAt(place)
  if (at !== null) return spool.read(at, length)
  const stored = reads.readRecord(id)
  if (stored === null || deflatedOf(stored.body).length !== length)
    throw new Error(`the stored bytes of record ${id} are not its own`)
  return deflatedOf(stored.body)
}

/** Streams that wait to be written, on the disk. */
export interface Spool {
  /** Writes bytes; returns their offset in the file. */
  put(bytes: Buffer): number
  read(at: number, length: number): Buffer
  /** Ends it and removes its file. */
  close(): void
}

/** Begins a spool in a file of its own. */
export function createSpool(path: string): Spool {
  const fd = openSync(path, 'w+', PRIVATE_FILE)
  let size = 0
  return {
    put(bytes) {
      const at = size
      while (size < at + bytes.length) size += writeSync(fd, bytes, size - at)
      return at
    },
    read(at, length) {
      const bytes = Buffer.allocUnsafe(length)
      if (readSync(fd, bytes, 0, length, at) < length) throw new Error('the spool is cut short')
      return bytes
    },
    close() {
      closeSync(fd)
      rmSync(path, { force: true })
    },
  }
}
