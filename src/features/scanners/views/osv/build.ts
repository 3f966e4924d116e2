import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { derivedDir, openViewsWriter } from '../../../../store/database/open.ts'
import type { ArchiveInfo, OsvReader } from '../../../../store/osv/reads.ts'
import { viewsPath } from '../../store/generations.ts'
import { type ViewsWriter, createViewsWriter } from '../../store/writes.ts'
import { createSpool } from '../../../../archive/zip/spool.ts'
import { type MadeFile, isSoundFile, linkFile } from '../files.ts'
import { type OldList, writeStamps } from './lists/lists.ts'
import { encodeLines, writeText } from './lists/text.ts'
import { MOST_FOLDERS } from './ecosystem-limit.ts'
import { copyViewsDatabase, writeDatabaseSum } from './database-sum.ts'
import { CSV, STAMP_LIST, type ViewsWork, ZIP, putView } from './folders.ts'
import { type RecordReads, type ViewChange, chooseFolders, updateRecords } from './records.ts'
import { beginArchive, fillAll } from './fill.ts'
import { folderForm } from '../osv-name.ts'
import { WHOLE, adoptWhole, createPlan, isSharedArchive } from './whole.ts'
import { PRIVATE_FOLDER } from '../../../../base/files.ts'
import { type ViewPart, spooledAt } from '../../store/member-writes.ts'
import { openViews } from '../../store/reads.ts'
import type { ArchiveDraft } from './archive.ts'
import type { StampRow } from './lists/merge.ts'
import { type ArchiveSource, openOldArchive } from './source.ts'

/** What a generation of the bucket is built from, all of one snapshot of the store. */
interface BuildOptions {
  readonly dataDir: string
  readonly reads: RecordReads & OsvReader
  /** Ids of the records that differ from an earlier snapshot; null when they are not known. */
  readonly listChanged: (since: string) => readonly string[] | null
  readonly archive: ArchiveInfo
  /** Last-Modified of everything in it, unix seconds. */
  readonly changed: number
  readonly snapshot: { readonly id: string; readonly asOf: number }
  /** Where to make it: a folder that is not there yet. */
  readonly folder: string
  /** The generation to update, when there is one. */
  readonly before: string | null
  /** Vendors whose prefixes are taken off in derived views; none: there are no derived views. */
  readonly vendors: readonly string[]
  /** Ecosystems that there may be; `MOST_FOLDERS` when not given. */
  readonly mostFolders?: number
  readonly pause: () => Promise<void>
}

/** What a build did. */
export interface BuildReport {
  readonly records: number
  /** Records that were new, changed or gone since the generation before. */
  readonly changed: number
  readonly views: number
  /** Records with an invalid ecosystem or package name, and those that name more ecosystems than the limit. */
  readonly odd: number
  /** False when there was no generation to update, or it was damaged. */
  readonly incremental: boolean
}

/** Builds a generation in `folder`; the caller names it. Equal rows give equal files, in any order of changes. */
export async function buildViews(options: BuildOptions): Promise<BuildReport> {
  const made = await build(options)
  writeDatabaseSum(options.folder)
  return made
}

async function build(options: BuildOptions): Promise<BuildReport> {
  const { folder, before } = options
  if (before !== null && takeOver(before, folder, folderForm(options.vendors))) {
    const made = await fill(options, before, null)
    if (made !== null) return made
  }
  emptyFolder(folder)
  const made = await fill(options, null, null)
  if (made !== null) return made
  const chosen = await chooseFolders({
    ...options,
    vendors: new Set(options.vendors),
    most: mostOf(options),
  })
  emptyFolder(folder)
  const limited = await fill(options, null, chosen)
  if (limited === null) throw new Error('there are more ecosystems than were chosen')
  return limited
}

function emptyFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, PRIVATE_FOLDER)
}

function mostOf({ mostFolders = MOST_FOLDERS }: BuildOptions): number {
  return mostFolders
}

/**
 * Fills a folder from the beginning, or updates it when the database of the generation `before` is in it; null when that takes
 * a build from the beginning, or another choice of folders. A generation with chosen folders is never updated: another
 * record may change the choice.
 */
async function fill(
  options: BuildOptions,
  before: string | null,
  chosen: ReadonlySet<string> | null,
): Promise<BuildReport | null> {
  const { dataDir, folder, snapshot, archive } = options
  const isNew = before === null
  const db = openViewsWriter(viewsPath(folder), isNew ? { cacheKb: FILL_CACHE_KB } : {})
  const spool = createSpool(join(folder, 'unfinished.spool'))
  try {
    const views = createViewsWriter(db, isNew)
    views.begin()
    linkFile(join(derivedDir(dataDir), archive.file), join(folder, WHOLE))
    const rules = { vendors: new Set(options.vendors), chosen }
    const work: ViewsWork = { ...options, views, spool, rules, most: mostOf(options) }
    const report = isNew ? await fillAll(work) : await update(work, before)
    if (report === null) return null
    await writeWhole(options, views, report.list)
    if (before !== null && !linkKept(views, folder, before)) return null
    const { records, changed } = report
    const odd = views.countOdd()
    const { id, asOf } = snapshot
    const info = { snapshot: id, asOf, changed: options.changed, records, odd }
    views.finish(info, chosen === null ? folderForm(options.vendors) : LIMITED)
    const made = { records, changed, odd, views: views.listViewIds().length }
    return { ...made, incremental: !isNew }
  } finally {
    spool.close()
    db.close()
  }
}

/** Pages of a database that is filled in the order of its keys, KiB: more save no time, but memory. */
const FILL_CACHE_KB = 2048

/** The form of a generation without all ecosystems. */
const LIMITED = 'limited'

/**
 * Copies the database of the previous generation, if that is complete and sound. Its files are checked as they are used: a
 * part by its CRC-32, a whole file by the digest in its name. A damaged generation is never updated.
 */
function takeOver(before: string, folder: string, form: string): boolean {
  try {
    mkdirSync(folder, PRIVATE_FOLDER)
    if (!copyViewsDatabase(before, folder)) return false
    const db = openViewsWriter(viewsPath(folder))
    try {
      return createViewsWriter(db).readForm() === form
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}

const TEXT = 'text/plain; charset=utf-8'

/** What is of all ecosystems together: the archive as it is published, the list of stamps, the names. */
async function writeWhole(options: BuildOptions, views: ViewsWriter, before: OldList | null): Promise<void> {
  const { folder, archive } = options
  const all = views.listViewIds()
  const prefixes = [...new Set(all.flatMap((view) => view.prefixes))].sort()
  const { size, sha256, crc32c } = archive
  const whole = { file: WHOLE, size, sha256, crc32c, type: ZIP, gzip: null, prefixes: [] }
  views.putAsset({ ...whole, path: WHOLE, view: null })
  const list = await writeStamps(folder, () => views.eachStamp(null), before)
  views.putAsset({ ...list, type: CSV, prefixes, path: STAMP_LIST, view: null })
  const names = await writeText(folder, encodeLines(all.map((view) => `${view.name}\n`)))
  views.putAsset({ ...names, type: TEXT, prefixes, path: 'ecosystems.txt', view: null })
}

/** Links the unchanged files into the new generation; false when one of them is damaged. */
function linkKept(views: ViewsWriter, folder: string, before: string): boolean {
  for (const file of views.listFiles()) {
    if (existsSync(join(folder, file))) continue
    if (!isSoundFile(before, file)) return false
    linkFile(join(before, file), join(folder, file))
  }
  return true
}

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
async function update(work: ViewsWork, before: string): Promise<Updated | null> {
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
