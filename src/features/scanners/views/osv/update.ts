import { join } from 'node:path'
import { type ViewPart, spooledAt } from '../../store/member-writes.ts'
import { openViews } from '../../store/reads.ts'
import type { MadeFile } from '../files.ts'
import type { ArchiveDraft } from './archive.ts'
import { beginArchive } from './fill.ts'
import { STAMP_LIST, type ViewsWork, putView } from './folders.ts'
import type { OldList } from './lists/lists.ts'
import type { StampRow } from './lists/merge.ts'
import { type ViewChange, updateRecords } from './records.ts'
import { type ArchiveSource, openOldArchive } from './source.ts'
import { adoptWhole, createPlan, isSharedArchive } from './whole.ts'

/** What was made of the records. */
interface Updated {
  readonly records: number
  readonly changed: number
  /** The list of all ecosystems of the generation before, and what differs. */
  readonly list: OldList | null
}

/**
 * Brings the database of the generation before, which is in the folder, up to date, and makes the files of the views in which
 * something differs; null when it takes a build from the beginning, also because a file of that generation is damaged.
 */
export async function update(work: ViewsWork, before: string): Promise<Updated | null> {
  const { views, pause } = work
  const prefixes = new Set<string>()
  const since = views.readSnapshot()
  const named = since === null ? null : work.listChanged(since)
  const old = openViews(before)
  const put = (): number => 0 // the streams go into the spool
  const options = { ...work, placing: { views, prefixes, put }, named, old }
  const made = await updateRecords(options).finally(() => old.close())
  if (made === null) return null
  const canMerge = !views.hasUndated()
  const all: Record<'removed' | 'added', StampRow[]> = { removed: [], added: [] }
  for (const view of views.listViewIds()) {
    const change = made.touched.get(view.id)
    if (change === undefined) continue
    const inView = ({ instant, name }: StampRow) => ({ instant, name: `${view.name}/${name}` })
    for (const row of change.removed) all.removed.push(inView(row))
    for (const row of change.added) all.added.push(inView(row))
    const options = { ...view, change, before, possible: prefixes, canMerge }
    if (!(await updateView(work, options, made.records))) return null
    await pause()
  }
  const file = views.readFile(STAMP_LIST)
  return {
    ...made,
    list: file === null || !canMerge ? null : { folder: before, file, change: all },
  }
}

/** A view to update. */
interface TouchedView {
  readonly id: number
  readonly name: string
  readonly prefixes: readonly string[]
  /** Prefixes that were taken off in changed records. */
  readonly possible: ReadonlySet<string>
  readonly change: ViewChange
  /** Lists of stamps can be merged. */
  readonly canMerge: boolean
  /** Folder of the generation before. */
  readonly before: string
}

/** Makes the files of a view, or removes it when it is empty; false when a file of the generation before is damaged. */
async function updateView(
  work: ViewsWork,
  { id: view, name, prefixes, possible, change, canMerge, before }: TouchedView,
  records: number,
): Promise<boolean> {
  const { views } = work
  const parts = views.listParts(view)
  const file = views.readFile(`${name}/all.zip`)
  const list = views.readFile(`${name}/${STAMP_LIST}`)
  views.dropParts(view)
  const shown = views.countView(view, new Set([...prefixes, ...possible]))
  if (shown === null) return true
  const hasAll = shown.prefixes.length === 0 && shown.records === records
  const whole = file !== null && hasAll && isSharedArchive(before, file)
  const path = file === null ? null : join(before, file)
  const archive = updateArchive(work, { view, path, parts, nums: change.nums, whole })
  if (archive === null) return false
  const old = list === null || !canMerge ? null : { folder: before, file: list, change }
  await putView(work, { view, name, archive, prefixes: shown.prefixes }, old)
  return true
}

/** An archive to update. */
interface OldArchive {
  readonly view: number
  /** The file of the generation before; null for a new view. */
  readonly path: string | null
  /** Its parts, the directory last. */
  readonly parts: readonly ViewPart[]
  /** Numbers of the members that differ. */
  readonly nums: readonly number[]
  /** It was the published archive, and has all records again. */
  readonly whole: boolean
}

/** Largest archive that is updated, bytes: in one over 4 GiB entries of the directory have another form. */
const MOST_BYTES = 3.5 * 2 ** 30

/** Writes an archive of the unchanged parts of the one before, and of the members of the others; null when that is damaged. */
function updateArchive(work: ViewsWork, old: OldArchive): MadeFile | null {
  const { path, parts } = old
  if ((parts.at(-1)?.at ?? 0) > MOST_BYTES) return null
  const source = path === null ? null : openOldArchive(path)
  if (source === null && path !== null) return null
  try {
    const made = copyParts(work, old, source)
    if (made === null || !old.whole) return made
    return adoptWhole(work.folder, work.views.listParts(old.view), made.crc32c)
  } finally {
    source?.close()
  }
}

const NONE = Buffer.alloc(0)

function copyParts(work: ViewsWork, old: OldArchive, source: ArchiveSource | null): MadeFile | null {
  const { view, nums, whole } = old
  const parts = old.parts.slice(0, -1)
  const directory = old.parts.at(-1)
  if (directory !== undefined && source?.isSound(directory) !== true) return null
  const draft = beginArchive(work, view, whole ? createPlan() : undefined)
  let entriesAt = directory?.at ?? 0
  for (const { run, dirty, from, before } of runsOf(parts, nums)) {
    const isCopied = !whole || dirty
    const bytes = isCopied ? (source?.readSound(run) ?? null) : NONE
    if (source === null || bytes === null) return null
    const entries = run.reduce((sum, part) => sum + part.entries, 0)
    const read = (place: number, length: number): Buffer => bytes.subarray(place, place + length)
    if (dirty) addMembers(work, draft, { view, from, before, read })
    else draft.adopt(run, source.readEntries(entriesAt, entries), bytes)
    entriesAt += entries
  }
  if (parts.length === 0) addMembers(work, draft, { view, from: -Infinity, before: Infinity })
  return draft.finish()
}

/** A part with members that differ, whose numbers are at least `from` and less than `before`; or neighbouring parts without. */
interface PartRun {
  readonly run: ViewPart[]
  readonly dirty: boolean
  readonly from: number
  readonly before: number
}

/** Most bytes of unchanged parts that are copied at once, unless a single part has more. */
const MOST_COPIED = 1 << 18

function runsOf(parts: readonly ViewPart[], nums: readonly number[]): PartRun[] {
  const changed = new Set(nums.map((num) => partOf(parts, num)))
  const runs: PartRun[] = []
  let size = 0
  for (const [i, part] of parts.entries()) {
    const dirty = changed.has(i)
    const last = runs.at(-1)
    const isMore = last?.dirty === false && !dirty && size + part.bytes <= MOST_COPIED
    size = isMore ? size + part.bytes : part.bytes
    const from = i === 0 ? -Infinity : part.first
    if (isMore) last.run.push(part)
    else runs.push({ run: [part], dirty, from, before: parts[i + 1]?.first ?? Infinity })
  }
  return runs
}

/** Members of a view, by their numbers: `from` is the first, `before` is none of them. */
interface Range {
  readonly view: number
  readonly from: number
  readonly before: number
  /** Reads from the part of the archive before. */
  readonly read?: (place: number, length: number) => Buffer
}

function addMembers(work: ViewsWork, draft: ArchiveDraft, { view, from, before, read }: Range): void {
  const { views, spool } = work
  for (const { id, place, length, ...member } of views.listMembers(view, from, before)) {
    const at = spooledAt(place)
    const deflated = at === null ? read?.(place, length) : spool.read(at, length)
    if (deflated === undefined) throw new Error(`the stream of record ${id} is lost`)
    const { num, crc32, size } = member
    const now = draft.add({ num, name: `${id}.json`, crc32, size, deflated })
    if (now !== place) views.placeMember(view, num, now)
  }
}

/** Index of the part to which a number belongs. */
function partOf(parts: readonly ViewPart[], num: number): number {
  let low = 0
  for (let high = parts.length; low < high;) {
    const middle = (low + high) >>> 1
    if ((parts[middle]?.first ?? Infinity) <= num) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}
