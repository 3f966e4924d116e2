import type { OsvReader, ArchiveInfo } from '../../../../store/osv/reads.ts'
import type { ViewsWriter } from '../../store/writes.ts'
import type { MadeFile } from '../files.ts'
import type { Spool } from '../../../../archive/zip/spool.ts'
import type { RecordReads } from './records.ts'
import type { PrepareRules } from './prepare/prepared.ts'
import { type OldList, writeStamps } from './lists/lists.ts'

/** What the folders of a generation are made with. */
export interface ViewsWork {
  readonly dataDir: string
  readonly reads: RecordReads & OsvReader
  /** The published archive. */
  readonly archive: ArchiveInfo
  readonly folder: string
  readonly views: ViewsWriter
  /** Takes what waits to be written. */
  readonly spool: Spool
  readonly snapshot: { readonly id: string }
  readonly rules: PrepareRules
  /** Folders that there may be, however they are called. */
  readonly most: number
  /** Ids of the records that differ from an earlier snapshot; null when the change log does not say which. */
  readonly listChanged: (since: string) => readonly string[] | null
  readonly pause: () => Promise<void>
}

/** Media type of an archive. */
export const ZIP = 'application/zip'
/** Media type of a list of stamps. */
export const CSV = 'text/csv; charset=utf-8'

/** A view whose files are made: its archive, and the prefixes that were taken off in it. */
interface MadeView {
  readonly view: number
  readonly name: string
  readonly archive: MadeFile
  readonly prefixes: readonly string[]
}

/** The name of each list of stamps; that of all ecosystems has it as its path under /osv/. */
export const STAMP_LIST = 'modified_id.csv'

/** Stores a view's archive, and makes its list of stamps; `old`: of the one of the generation before, if there is one. */
export async function putView(
  { folder, views }: Pick<ViewsWork, 'folder' | 'views'>,
  { view, name, archive, prefixes }: MadeView,
  old: OldList | null,
): Promise<void> {
  const zip = { ...archive, type: ZIP, gzip: null, prefixes }
  views.putAsset({ ...zip, path: `${name}/all.zip`, view })
  const list = await writeStamps(folder, () => views.eachStamp(view), old)
  views.putAsset({ ...list, type: CSV, prefixes, path: `${name}/${STAMP_LIST}`, view })
}
