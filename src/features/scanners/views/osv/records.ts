import { contentOf } from '../../../../store/database/gzip.ts'
import type { OsvReader } from '../../../../store/osv/reads.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { spooled } from '../../store/member-writes.ts'
import type { ViewRecord, Views } from '../../store/reads.ts'
import { GAP } from '../../store/numbers.ts'
import type { Spool } from '../../../../archive/zip/spool.ts'
import type { ViewsWriter } from '../../store/writes.ts'
import { eachBatch } from './prepare/contents.ts'
import { createFolderChoice } from './ecosystem-limit.ts'
import type { ListChange, StampRow } from './lists/merge.ts'
import { type Placing, placeRecord } from './place.ts'
import { type PrepareRules, prepareRecord } from './prepare/prepared.ts'
import { type PrepareOptions, prepareAll } from './prepare/read.ts'
import { contentIn } from './prepare/send.ts'
import { analyse } from './record.ts'

/** What records are read from. */
export type RecordReads = Pick<OsvReader, 'countRecords' | 'eachDigest' | 'eachSum' | 'readEntry' | 'readRecord'>

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
export async function placeAll(options: RecordsOptions & PrepareOptions): Promise<{ records: number } | null> {
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

/** What differs in a view. */
export interface ViewChange extends ListChange {
  /** The numbers of the members that came, changed or left. */
  readonly nums: readonly number[]
}

/** What an update did. */
interface Update {
  readonly records: number
  /** Records that were new, changed or gone. */
  readonly changed: number
  /** What differs in each view that is touched. */
  readonly touched: ReadonlyMap<number, ViewChange>
}

/** What an update starts from. */
interface UpdateOptions extends RecordsOptions {
  readonly spool: Spool
  /** The generation before. */
  readonly old: Pick<Views, 'readUpstreamRecord'>
  /** The ids that the change log names; null when it does not say which. */
  readonly named: readonly string[] | null
}

/**
 * Brings the rows of records, members and names to what is stored: only what is new, changed or gone is read. Null when
 * another build from the beginning is needed: much differs, a number is missing, there are too many folders, or the generation
 * before is damaged.
 */
export async function updateRecords(options: UpdateOptions): Promise<Update | null> {
  const { reads, placing, rules, most, pause, spool } = options
  const { views } = placing
  const found = await compareRecords({ ...options, views })
  if (found === null) return null
  const { changed, gone, records } = found
  const touched = createTouched()
  for (const old of gone) if (!dropRecord(options, old, true, touched)) return null
  for (const { old } of changed) if (old !== null && !dropRecord(options, old, false, touched)) return null
  for (const { id, old, sha256, stamp } of changed) {
    const num = old?.num ?? views.numberFor(id)
    if (num === null) return null
    const stored = reads.readRecord(id)
    if (stored === null) throw new Error(`the bytes of record ${id} are lost`)
    const { body, size } = stored
    const content = contentIn({ id, sha256, stamp, body, content: contentOf(body, size) })
    const record = prepareRecord(content, rules)
    const put: Placing['put'] = (view, { deflated }) => {
      touched.add(view, num, { instant: record.instant, name: id })
      return spooled(spool.put(deflated))
    }
    placeRecord({ ...placing, put }, num, record)
    if (views.countFolders() > most) return null
    await pause()
  }
  return { records, changed: changed.length + gone.length, touched: touched.views }
}

function createTouched() {
  const views = new Map<number, { nums: number[]; removed: StampRow[]; added: StampRow[] }>()
  const changeOf = (view: number) => {
    const change = views.get(view) ?? { nums: [], removed: [], added: [] }
    views.set(view, change)
    return change
  }
  return {
    views,
    add(view: number, num: number, row: StampRow): void {
      const { nums, added } = changeOf(view)
      nums.push(num)
      added.push(row)
    },
    remove(view: number, num: number, row: StampRow): void {
      const { nums, removed } = changeOf(view)
      nums.push(num)
      removed.push(row)
    },
  }
}

/**
 * Removes a record from all views; `gone`: its own row as well. The rows of those that changed stay until they are stored again,
 * so that no other record gets a number behind theirs. What it named is found by its bytes, as it was when they were
 * stored. False when these are damaged or not all rows are there.
 */
function dropRecord(
  { placing: { views }, rules, old }: UpdateOptions,
  { num, id, sha256, stamp }: OldRecord,
  gone: boolean,
  touched: Pick<ReturnType<typeof createTouched>, 'remove'>,
): boolean {
  const stored = readSound(old, id)
  if (stored === null) return false
  const record = prepareRecord({ ...stored, id, sha256, stamp }, rules)
  const forms = [record.own.folders, record.derived?.folders ?? []].flat()
  for (const [folder, names] of forms) {
    const view = views.viewId(folder)
    if (!views.dropMember(view, num, names)) return false
    touched.remove(view, num, { instant: record.instant, name: id })
  }
  views.countEcosystems(record.ecosystems, -1)
  return views.dropAliases(num, record.aliases) && (!gone || views.dropRow(num))
}

function readSound(old: UpdateOptions['old'], id: string): ViewRecord | null {
  try {
    return old.readUpstreamRecord(id)
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'corrupt') return null
    throw error
  }
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

/** A record that is new, or not as it was in the generation before. */
interface ChangedRecord {
  readonly id: string
  readonly sha256: Buffer
  readonly stamp: string
  /** Its row in the generation before; null for a new record. */
  readonly old: OldRecord | null
}

/** A record of the generation before. */
interface OldRecord {
  readonly num: number
  readonly id: string
  readonly sha256: Buffer
  readonly stamp: string
}

interface Comparison {
  readonly changed: readonly ChangedRecord[]
  readonly gone: readonly OldRecord[]
  readonly records: number
}

/** What two states of the records are compared by. */
interface CompareOptions {
  readonly reads: Pick<OsvReader, 'countRecords' | 'eachDigest' | 'readEntry' | 'readRecord'>
  readonly views: Pick<ViewsWriter, 'countRecords' | 'eachRecord' | 'readRow'>
  /** The ids that the change log names; null when it does not say which. */
  readonly named: readonly string[] | null
  readonly pause: () => Promise<void>
}

const PAGE = 1000
/** Differences with which an update takes less than a build from the beginning: of so many records one. */
const SHARE = 8

/** Finds the records that differ, in the order of their ids; null when much differs. */
async function compareRecords(options: CompareOptions): Promise<Comparison | null> {
  const { reads, views, named } = options
  const known = views.countRecords()
  const most = Math.max(PAGE, known / SHARE)
  if (named === null) return compareAll(options, most)
  if (named.length > most) return null
  const found = compareNamed(options, named)
  const added = found.changed.filter(({ old }) => old === null).length
  // Another program may have changed the database.
  const isComplete = known + added - found.gone.length === reads.countRecords()
  return isComplete ? { ...found, records: known + added - found.gone.length } : compareAll(options, most)
}

function compareNamed({ reads, views }: CompareOptions, named: readonly string[]) {
  const changed: ChangedRecord[] = []
  const gone: OldRecord[] = []
  for (const id of named) {
    const old = toOld(views.readRow(id))
    const stamp = reads.readEntry(id)?.modified
    if (stamp === undefined) {
      if (old !== null) gone.push(old)
      continue
    }
    const stored = reads.readRecord(id)
    if (stored === null) throw new Error(`the bytes of record ${id} are lost`)
    const { sha256 } = stored
    if (old?.stamp === stamp && old.sha256.equals(sha256)) continue
    changed.push({ id, sha256, stamp, old })
  }
  return { changed, gone }
}

type Row = ReturnType<ViewsWriter['readRow']>

function toOld(row: Row): OldRecord | null {
  if (row === null) return null
  const [num, id, sha256, stamp] = row
  return { num, id, sha256, stamp }
}

/** Walks the stored records and those of the generation. */
async function compareAll({ reads, views, pause }: CompareOptions, most: number): Promise<Comparison | null> {
  const changed: ChangedRecord[] = []
  const gone: OldRecord[] = []
  const known = views.eachRecord()
  const take = (): OldRecord | null => {
    const next = known.next()
    return toOld(next.done === true ? null : next.value)
  }
  try {
    let next = take()
    let records = 0
    for (const [id, sha256, stamp] of reads.eachDigest()) {
      if (++records % PAGE === 0) await pause()
      for (; next !== null && isBefore(next.id, id); next = take()) gone.push(next)
      const old = next?.id === id ? next : null
      if (old !== null) next = take()
      if (old?.stamp === stamp && old.sha256.equals(sha256)) continue
      changed.push({ id, sha256, stamp, old })
      if (changed.length + gone.length > most) return null
    }
    for (; next !== null; next = take()) gone.push(next)
    return changed.length + gone.length > most ? null : { changed, gone, records }
  } finally {
    known.return?.()
  }
}

/** Compares ids as the database orders them. */
function isBefore(one: string, other: string): boolean {
  return one !== other && Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}
