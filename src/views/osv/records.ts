import { contentOf } from '../../store/database/gzip.ts'
import type { OsvReader } from '../../store/osv/reads.ts'
import { spooled } from '../../store/views/member-writes.ts'
import { GAP } from '../../store/views/numbers.ts'
import type { Spool } from '../../zip/spool.ts'
import { eachBatch } from './prepare/contents.ts'
import { createFolderChoice } from './ecosystem-limit.ts'
import { type Placing, placeRecord } from './place.ts'
import { type PrepareRules, prepareRecord } from './prepare/prepared.ts'
import { type PrepareOptions, prepareAll } from './prepare/read.ts'
import { contentIn } from './prepare/send.ts'
import { analyse } from './record.ts'

/** What records are read from. */
export type RecordReads = Pick<OsvReader, 'countRecords' | 'eachDigest' | 'eachSum' | 'readRecord'>

/** What bringing a generation's rows up to date needs. */
interface RecordsOptions {
  readonly reads: RecordReads
  readonly placing: Placing
  readonly rules: PrepareRules
  /** Folders that there may be, however they are called. */
  readonly most: number
  /** Yields to other work from time to time; throws when the build is to end. */
  readonly pause: () => Promise<void>
}

/** Ends a walk over the records. */
class TooManyFolders extends Error {}

/** Places all records, in the order of their ids; null when that takes more folders than there may be. */
export async function placeAll(
  options: RecordsOptions & PrepareOptions,
): Promise<{ records: number } | null> {
  const { placing, most } = options
  let records = 0
  try {
    await prepareAll(options, (record) => {
      placeRecord(placing, ++records * GAP, record)
      if (placing.views.countFolders() > most) throw new TooManyFolders()
    })
    return { records }
  } catch (error) {
    if (error instanceof TooManyFolders) return null
    throw error
  }
}

/** What an update did. */
interface Update {
  readonly records: number
  /** Records that were new, changed or gone. */
  readonly changed: number
  /** The numbers of the members that came into a view, changed in it or left it. */
  readonly touched: ReadonlyMap<number, readonly number[]>
}

/**
 * Brings the rows of records, members and names to what is stored: only what is new, changed or gone is read. Null when
 * another build from the beginning is needed: much differs, a number is missing, or there are too many folders.
 */
export async function updateRecords(
  options: RecordsOptions & { readonly spool: Spool },
): Promise<Update | null> {
  const { reads, placing, rules, most, pause, spool } = options
  const { views } = placing
  const found = await compareRecords(options)
  if (found === null) return null
  const { changed, gone, records } = found
  const touched = new Map<number, number[]>()
  const touch = (view: number, num: number): void => {
    const nums = touched.get(view)
    if (nums === undefined) touched.set(view, [num])
    else nums.push(num)
  }
  views.dropRecords({ gone, changed: changed.flatMap(({ num }) => num ?? []) }, touch)
  const into: Placing = {
    ...placing,
    put(view, { num, deflated }) {
      touch(view, num)
      return spooled(spool.put(deflated))
    },
  }
  for (const { id, num: before, sha256, stamp } of changed) {
    const num = before ?? views.numberFor(id)
    if (num === null) return null
    const stored = reads.readRecord(id)
    if (stored === null) throw new Error(`the bytes of record ${id} are lost`)
    const { body, size } = stored
    const content = contentIn({ id, sha256, stamp, body, content: contentOf(body, size) })
    placeRecord(into, num, prepareRecord(content, rules))
    if (views.countFolders() > most) return null
    await pause()
  }
  return { records, changed: changed.length + gone.length, touched }
}

interface Changed {
  readonly id: string
  /** Null for a new record. */
  readonly num: number | null
  readonly sha256: Buffer
  readonly stamp: string
}

interface Comparison {
  readonly changed: readonly Changed[]
  /** Numbers of the records that are not stored any more. */
  readonly gone: readonly number[]
  readonly records: number
}

const PAGE = 1000
/** Differences with which an update takes less than a build from the beginning: of so many records one. */
const SHARE = 8

/** Walks the stored records and those of the generation in the order of their ids; null when much differs. */
async function compareRecords(options: RecordsOptions): Promise<Comparison | null> {
  const { reads, placing, pause } = options
  const most = Math.max(PAGE, placing.views.countRecords() / SHARE)
  const changed: Changed[] = []
  const gone: number[] = []
  const known = placing.views.eachRecord()
  try {
    let next = known.next()
    let records = 0
    for (const [id, sha256, stamp] of reads.eachDigest()) {
      if (++records % PAGE === 0) await pause()
      while (next.done !== true && isBefore(next.value[1], id)) {
        gone.push(next.value[0])
        next = known.next()
      }
      const same = next.done !== true && next.value[1] === id ? next.value : null
      if (same !== null) next = known.next()
      if (same !== null && same[3] === stamp && same[2].equals(sha256)) continue
      changed.push({ id, num: same?.[0] ?? null, sha256, stamp })
      if (changed.length + gone.length > most) return null
    }
    for (; next.done !== true; next = known.next()) gone.push(next.value[0])
    return gone.length > most ? null : { changed, gone, records }
  } finally {
    known.return?.()
  }
}

/** Compares ids as the database orders them. */
function isBefore(one: string, other: string): boolean {
  return one !== other && Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}

/** The folders that there may be, of all that the records name; null when all of them may. */
export async function chooseFolders(
  options: Pick<RecordsOptions, 'reads' | 'most' | 'pause'> & Pick<PrepareRules, 'vendors'>,
): Promise<ReadonlySet<string> | null> {
  const { reads, most, pause, vendors } = options
  const choice = createFolderChoice(most)
  for (const batch of eachBatch(reads)) {
    for (const { content, stamp } of batch) {
      const found = analyse(content, stamp, vendors)
      for (const name of found.folders.keys()) choice.add(name)
      for (const name of found.derived?.folders.keys() ?? []) choice.add(name)
    }
    await pause()
  }
  return choice.chosen()
}
