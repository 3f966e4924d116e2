import type { Db } from '../../../store/database/open.ts'
import { queries } from '../../../store/database/query.ts'
import type { ViewAsset } from './reads.ts'

/** Creates writes of views and of the files that they are served as. */
export function createAssetWriter(db: Db) {
  const { value } = queries(db)
  const put = db.prepare(
    `INSERT OR REPLACE INTO asset
     VALUES (@path, @view, @type, @file, @size, @sha256, @crc32c, @gzipFile, @gzipSize, @prefixes)`,
  )
  const files = db
    .prepare<[], string>('SELECT file FROM asset UNION SELECT gzip_file FROM asset WHERE gzip_file IS NOT NULL')
    .pluck()
  return {
    ...createViewCounter(db),
    putAsset({ path, view, gzip, ...asset }: ViewAsset & { path: string; view: number | null }) {
      const gzipped = { gzipFile: gzip?.file ?? null, gzipSize: gzip?.size ?? null }
      put.run({ ...asset, ...gzipped, path, view, prefixes: JSON.stringify(asset.prefixes) })
    },
    /** The file at a path under /osv/, such as `Debian/all.zip`; null when there is none. */
    readFile: value<[path: string], string>('SELECT file FROM asset WHERE path = ?'),
    /** The name of every file of the generation. */
    listFiles: (): string[] => files.all(),
  }
}

/** What a view contains. */
interface ViewCount {
  readonly records: number
  readonly prefixes: readonly string[]
}

function createViewCounter(db: Db) {
  const drop = db.prepare('DELETE FROM asset WHERE view = ?')
  const dropView = db.prepare('DELETE FROM view WHERE id = ?')
  const count = db.prepare<[number], number>('SELECT count(*) FROM member WHERE view = ?').pluck()
  const shown = db
    .prepare<[number, string], number>(
      `SELECT 1 FROM member m JOIN record r ON r.num = m.num
       WHERE m.view = ? AND m.derived = 1 AND ? IN (SELECT value FROM json_each(r.prefixes)) LIMIT 1`,
    )
    .pluck()
  const setView = db.prepare('UPDATE view SET records = ?, prefixes = ? WHERE id = ?')
  const views = db.prepare<[], { id: number; name: string; records: number; prefixes: string }>(
    'SELECT id, name, records, prefixes FROM view ORDER BY name',
  )
  return {
    /**
     * Counts a view's records again: returns their number and the prefixes, of all that `possible` names, in order, or null if
     * the view was empty and is removed.
     */
    countView(view: number, possible: Iterable<string>): ViewCount | null {
      const records = count.get(view) ?? 0
      drop.run(view)
      const prefixes = [...possible].filter((one) => shown.get(view, one) === 1).sort()
      if (records === 0) dropView.run(view)
      else setView.run(records, JSON.stringify(prefixes), view)
      return records === 0 ? null : { records, prefixes }
    },
    listViewIds: () => views.all().map((row) => ({ ...row, prefixes: JSON.parse(row.prefixes) as string[] })),
  }
}
