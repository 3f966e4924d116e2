import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { derivedDir, openViewsWriter } from '../../store/database/open.ts'
import type { ArchiveInfo, OsvReader } from '../../store/osv/reads.ts'
import { viewsPath } from '../../store/views/generations.ts'
import { type ViewsWriter, createViewsWriter } from '../../store/views/writes.ts'
import { type Spool, writeViewArchive, createSpool } from './archive.ts'
import { createPieces, isSoundFile, linkFile } from '../files.ts'
import { stampLines, writeText } from './stamps.ts'
import { MOST_FOLDERS } from './ecosystem-limit.ts'
import { type RecordReads, chooseFolders, updateRecords } from './records.ts'
import { PRIVATE_FOLDER } from '../../core/files.ts'

/** What a generation of the bucket is built from, all of one snapshot of the store. */
interface BuildOptions {
  readonly dataDir: string
  readonly reads: RecordReads & OsvReader
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

/** Version of the rules. Increase it when equal rows give other views: then no generation updates an earlier one. */
const RULES = 5

/** Builds a generation in `folder`; the caller names it. Equal rows give equal files, in any order of changes. */
export async function buildViews(options: BuildOptions): Promise<BuildReport> {
  const { folder, before } = options
  if (before !== null && takeOver(before, folder, folderForm(options))) {
    const made = await fill(options, before, null)
    if (made !== null) return made
  }
  emptyFolder(folder)
  const made = await fill(options, null, null)
  if (made !== null) return made
  const chosen = await chooseFolders({ ...options, most: mostOf(options) })
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
 * Updates a folder to the stored records; `before` is the generation whose database is in it. Null when there are more
 * folders than the limit. A generation with chosen folders is never updated: another record may change the choice.
 */
async function fill(
  options: BuildOptions,
  before: string | null,
  chosen: ReadonlySet<string> | null,
): Promise<BuildReport | null> {
  const { folder, snapshot } = options
  const db = openViewsWriter(viewsPath(folder))
  const spool = createSpool(join(folder, 'unfinished.spool'))
  try {
    const views = createViewsWriter(db)
    views.begin()
    const most = mostOf(options)
    const report = await updateRecords({ ...options, views, spool, chosen, most })
    if (report === null) return null
    await writeViews(options, views, spool, report.touched, before)
    await writeWhole(options, views)
    linkKept(views, folder, before)
    const { records, changed } = report
    const odd = views.countOdd()
    const { id, asOf } = snapshot
    const info = { snapshot: id, asOf, changed: options.changed, records, odd }
    views.finish(info, chosen === null ? folderForm(options) : LIMITED)
    const made = { records, changed, odd, views: views.listViewIds().length }
    return { ...made, incremental: before !== null }
  } finally {
    spool.close()
    db.close()
  }
}

/** The form of a generation without all ecosystems. */
const LIMITED = 'limited'

/** The settings and rules that a generation depends on. */
export function folderForm({ vendors }: Pick<BuildOptions, 'vendors'>): string {
  return JSON.stringify([RULES, ...[...vendors].sort()])
}

/**
 * Copies the database of the previous generation, if that is complete: each of its files has the digest in its
 * name. A damaged generation is never updated.
 */
function takeOver(before: string, folder: string, form: string): boolean {
  try {
    mkdirSync(folder, PRIVATE_FOLDER)
    cpSync(viewsPath(before), viewsPath(folder))
    const db = openViewsWriter(viewsPath(folder))
    try {
      const views = createViewsWriter(db)
      if (views.readForm() !== form || !views.isSound()) return false
      return views.listFiles().every((file) => file === WHOLE || isSoundFile(before, file))
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}

async function writeViews(
  { folder, reads, pause }: BuildOptions,
  views: ViewsWriter,
  spool: Spool,
  touched: ReadonlySet<number>,
  before: string | null,
): Promise<void> {
  const names = new Map(views.listViewIds().map(({ id, name }) => [id, name]))
  for (const view of touched) {
    const previous = before === null ? null : views.readArchiveFile(view)
    const prefixes = views.countView(view)
    if (prefixes === null) continue
    const name = names.get(view) ?? ''
    const pieces =
      previous === null || before === null ? null : createPieces(join(before, previous))
    try {
      const parts = { folder, views, view, before: pieces, spool, reads, pause }
      const archive = await writeViewArchive(parts)
      const zip = { ...archive, type: ZIP, gzip: null, prefixes }
      views.putAsset({ ...zip, path: `${name}/all.zip`, view })
      const list = await writeText(folder, stampLines(views.eachStamp(view)))
      views.putAsset({ ...list, type: CSV, prefixes, path: `${name}/modified_id.csv`, view })
    } finally {
      pieces?.close()
    }
  }
}

/** The published archive under its name in the bucket: another name for the mirror's own file. */
export const WHOLE = 'all.zip'
const ZIP = 'application/zip'
const CSV = 'text/csv; charset=utf-8'
const TEXT = 'text/plain; charset=utf-8'

/** What is of all ecosystems together: the archive as it is published, the list of stamps, the names. */
async function writeWhole(options: BuildOptions, views: ViewsWriter): Promise<void> {
  const { folder, dataDir, archive } = options
  const all = views.listViewIds()
  const prefixes = [...new Set(all.flatMap((view) => view.prefixes))].sort()
  const { file, size, sha256, crc32c } = archive
  linkFile(join(derivedDir(dataDir), file), join(folder, WHOLE))
  const whole = { file: WHOLE, size, sha256, crc32c, type: ZIP, gzip: null, prefixes: [] }
  views.putAsset({ ...whole, path: WHOLE, view: null })
  const list = await writeText(folder, stampLines(views.eachStamp(null)))
  views.putAsset({ ...list, type: CSV, prefixes, path: 'modified_id.csv', view: null })
  const names = await writeText(
    folder,
    all.map((view) => `${view.name}\n`),
  )
  views.putAsset({ ...names, type: TEXT, prefixes, path: 'ecosystems.txt', view: null })
}

/** Links the unchanged files into the new generation. */
function linkKept(views: ViewsWriter, folder: string, before: string | null): void {
  if (before === null) return
  for (const file of views.listFiles())
    if (!existsSync(join(folder, file))) linkFile(join(before, file), join(folder, file))
}
