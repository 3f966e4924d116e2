import { crc32 } from 'node:zlib'
import { contentOf, deflatedOf } from '../../store/database/gzip.ts'
import type { OsvReader } from '../../store/osv/reads.ts'
import { type ViewsWriter, STORED, spooled } from '../../store/views/writes.ts'
import { deflate } from '../../zip/member.ts'
import type { Spool } from './archive.ts'
import { createFolderChoice } from './ecosystem-limit.ts'
import { type Folders, analyse } from './record.ts'

/** What records are read from. */
export type RecordReads = Pick<OsvReader, 'eachDigest' | 'readEntry' | 'readRecord'>

/** What bringing a generation's rows up to date needs. */
interface RecordsOptions {
  readonly reads: RecordReads
  readonly views: ViewsWriter
  /** Takes the derived streams until they are written. */
  readonly spool: Spool
  /** Vendors whose prefixes are taken off in derived views; none: there are no derived views. */
  readonly vendors: readonly string[]
  /** The folders that there may be, where a choice was made; null: all of them. */
  readonly chosen: ReadonlySet<string> | null
  /** Folders that there may be, however they are called. */
  readonly most: number
  /** Yields to other work from time to time; throws when the build is to end. */
  readonly pause: () => Promise<void>
}

/** What was found to differ. */
interface RecordsReport {
  /** Views that a record came into, changed in or left. */
  readonly touched: ReadonlySet<number>
  readonly records: number
  readonly changed: number
}

const PAGE = 1000

/**
 * Brings the rows of records, members and names to what is stored: only what is new, changed or gone is looked at. Null
 * when that takes more folders than there may be: then nothing of it is of use, and a choice is to be made.
 */
export async function updateRecords(options: RecordsOptions): Promise<RecordsReport | null> {
  const { reads, views, pause } = options
  const touched = new Set<number>()
  let records = 0
  let changed = 0
  for (const [id, sha256, stamp] of reads.eachDigest()) {
    if (++records % PAGE === 0) await pause()
    const stored = views.readStored(id)
    if (stored !== null && stored.stamp === stamp && stored.sha256.equals(sha256)) continue
    if (stored !== null) for (const view of views.dropRecord(id)) touched.add(view)
    for (const view of insertRecord(options, id, sha256, stamp)) touched.add(view)
    if (views.countFolders() > options.most) return null
    changed++
  }
  for (let after = ''; ;) {
    const ids = views.listRecordIds(after, PAGE)
    const last = ids.at(-1)
    if (last === undefined) return { touched, records, changed }
    after = last
    for (const id of ids) {
      if (reads.readEntry(id) !== null) continue
      for (const view of views.dropRecord(id)) touched.add(view)
      changed++
    }
    await pause()
  }
}

/** The folders that there may be, of all that the records name; null when all of them may. */
export async function chooseFolders(
  options: Pick<RecordsOptions, 'reads' | 'vendors' | 'most' | 'pause'>,
): Promise<ReadonlySet<string> | null> {
  const { reads, most, pause } = options
  const vendors = new Set(options.vendors)
  const choice = createFolderChoice(most)
  let records = 0
  for (const [id, , stamp] of reads.eachDigest()) {
    if (++records % PAGE === 0) await pause()
    const found = analyse(readStored(reads, id).content, stamp, vendors)
    for (const name of found.folders.keys()) choice.add(name)
    for (const name of found.derived?.folders.keys() ?? []) choice.add(name)
  }
  return choice.chosen()
}

function readStored(reads: Pick<RecordReads, 'readRecord'>, id: string) {
  const stored = reads.readRecord(id)
  if (stored === null) throw new Error(`the bytes of record ${id} are lost`)
  const length = deflatedOf(stored.body).length
  return { content: contentOf(stored.body, stored.size), length }
}

function insertRecord(
  { reads, views, spool, vendors, chosen }: RecordsOptions,
  id: string,
  sha256: Buffer,
  stamp: string,
): Set<number> {
  const { content, length } = readStored(reads, id)
  const isFolder = (name: string): boolean => chosen?.has(name) ?? true
  const { instant, folders, derived, malformed, aliases } = analyse(
    content,
    stamp,
    new Set(vendors),
    isFolder,
  )
  const into = new Set<number>()
  const put = (where: Folders, member: Parameters<ViewsWriter['insertMember']>[1]): void => {
    for (const [folder, names] of where) {
      const view = views.viewId(folder)
      into.add(view)
      views.insertMember(view, member)
      for (const name of names) views.insertName(view, name, id)
    }
  }
  views.insertRecord({ id, sha256, stamp, instant, prefixes: derived?.prefixes ?? [], malformed })
  for (const name of aliases) views.insertAlias(name, id)
  put(folders, { ...measured(id, content, length), derived: false, place: STORED })
  if (derived === null) return into
  const deflated = deflate(derived.content)
  const place = spooled(spool.put(deflated))
  put(derived.folders, { ...measured(id, derived.content, deflated.length), derived: true, place })
  return into
}

function measured(id: string, content: Buffer, length: number) {
  return { id, crc32: crc32(content), size: content.length, length }
}
