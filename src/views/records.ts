import { crc32 } from 'node:zlib'
import { contentOf, deflatedOf } from '../store/gzip.ts'
import type { OsvReader } from '../store/osv.ts'
import { STORED, type ViewsWriter, spooled } from '../store/views-write.ts'
import { deflate } from '../zip/member.ts'
import type { Spool } from './spool.ts'
import { type Folders, analyse } from './record.ts'

/** What records are read from. */
export type RecordReads = Pick<OsvReader, 'eachDigest' | 'readEntry' | 'readRecord'>

/** What bringing a generation's rows up to date needs. */
export interface RecordsOptions {
  readonly reads: RecordReads
  readonly views: ViewsWriter
  /** Takes the derived streams until they are written. */
  readonly spool: Spool
  readonly derived: boolean
  /** Gives other work a turn now and then; throws when the build is to end. */
  readonly pause: () => Promise<void>
}

/** What was found to differ. */
export interface RecordsReport {
  /** Views that a record came into, changed in or left. */
  readonly touched: ReadonlySet<number>
  readonly records: number
  readonly changed: number
}

const PAGE = 1000

/** Brings the rows of records, members and names to what is stored: only what is new, changed or gone is looked at. */
export async function updateRecords(options: RecordsOptions): Promise<RecordsReport> {
  const { reads, views, pause } = options
  const touched = new Set<number>()
  let records = 0
  let changed = 0
  for (const [id, sha256, stamp] of reads.eachDigest()) {
    if (++records % PAGE === 0) await pause()
    const held = views.readHeld(id)
    if (held !== null && held.stamp === stamp && held.sha256.equals(sha256)) continue
    if (held !== null) for (const view of views.dropRecord(id)) touched.add(view)
    for (const view of insertRecord(options, id, sha256, stamp)) touched.add(view)
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

function insertRecord(
  { reads, views, spool, derived: withDerived }: RecordsOptions,
  id: string,
  sha256: Buffer,
  stamp: string,
): Set<number> {
  const stored = reads.readRecord(id)
  if (stored === null) throw new Error(`the bytes of record ${id} are lost`)
  const content = contentOf(stored.body, stored.size)
  const { instant, folders, derived } = analyse(content, stamp, withDerived)
  const into = new Set<number>()
  const put = (where: Folders, member: Parameters<ViewsWriter['insertMember']>[1]): void => {
    for (const [folder, names] of where) {
      const view = views.viewId(folder)
      into.add(view)
      views.insertMember(view, member)
      for (const name of names) views.insertName(view, name, id)
    }
  }
  views.insertRecord({ id, sha256, stamp, instant, prefixes: derived?.prefixes ?? [] })
  const length = deflatedOf(stored.body).length
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
