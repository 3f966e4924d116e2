import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { derivedDir, openViewsWriter } from '../../../../store/database/open.ts'
import type { ArchiveInfo, OsvReader } from '../../../../store/osv/reads.ts'
import { viewsPath } from '../../store/generations.ts'
import { type ViewsWriter, createViewsWriter } from '../../store/writes.ts'
import { createSpool } from '../../../../archive/zip/spool.ts'
import { isSoundFile, linkFile } from '../files.ts'
import { type OldList, writeStamps } from './lists/lists.ts'
import { encodeLines, writeText } from './lists/text.ts'
import { MOST_FOLDERS } from './ecosystem-limit.ts'
import { copyViewsDatabase, writeDatabaseSum } from './database-sum.ts'
import { CSV, STAMP_LIST, type ViewsWork, ZIP } from './folders.ts'
import { type RecordReads, chooseFolders } from './records.ts'
import { fillAll } from './fill.ts'
import { folderForm } from '../osv-name.ts'
import { update } from './update.ts'
import { WHOLE } from './whole.ts'
import { PRIVATE_FOLDER } from '../../../../base/files.ts'

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
