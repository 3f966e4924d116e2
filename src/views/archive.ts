import type { OsvReader } from '../store/osv.ts'
import { deflatedOf } from '../store/gzip.ts'
import { type PlacedMember, type ViewsWriter, spooledAt } from '../store/views-write.ts'
import { createZipWriter } from '../zip/writer.ts'
import { type MadeFile, createFileDraft } from './files.ts'
import type { Spool } from './spool.ts'

/** Where a view's archive is made from. */
export interface ArchiveOptions {
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
