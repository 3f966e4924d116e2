import type { TagWithRecord } from '../../base/reports/records.ts'
import type { Db } from '../database/sqlite.ts'

/** The mirrored tags with a record, in the order of their names. */
export interface RecordTags {
  readonly tags: readonly TagWithRecord[]
  /** Number of tags, also of those that are not listed. */
  readonly tagCount: number
  /**
   * Ids of judged tags without it of which that is not certain: a package of them cannot be compared with the record, an SBOM may not
   * list all of it, or of none of its packages it is known who they are.
   */
  readonly uncertain: readonly string[]
}

/** Findings that are listed of a record. */
const MOST = 1000

/** Creates the read of the findings of one record. */
export function createRecordTags(db: Db) {
  type Row = Omit<TagWithRecord, 'fixable' | 'suppressed'> & Record<'fixable' | 'suppressed', 0 | 1>
  const rows = db.prepare<[string, number], Row>(
    `SELECT t.owner AS id, t.name, c.ecosystem, c.name AS package, c.version, nullif(f.source, '') AS source, f.fixable | f.patched AS fixable,
       EXISTS (SELECT 1 FROM suppressed s WHERE s.component = c.id AND s.tag = t.id AND s.record = f.record) AS suppressed
     FROM finding f JOIN component c ON c.id = f.component
       JOIN tag_component l ON l.component = c.id JOIN tag t ON t.id = l.tag
     WHERE f.record = ? ORDER BY t.name, t.owner, c.name, c.version LIMIT ?`,
  )
  const count = createTagCount(db)
  const uncertain = db
    .prepare<{ record: string }, string>(
      `SELECT t.owner FROM tag t
       WHERE t.refusal IS NULL
         AND t.id NOT IN (SELECT l.tag FROM finding f JOIN tag_component l ON l.component = f.component WHERE f.record = @record)
         AND (t.sbom_gap IS NOT NULL OR t.platform_gap IS NOT NULL OR t.packages <= t.unidentified
           OR t.id IN (SELECT l.tag FROM uncompared u JOIN tag_component l ON l.component = u.component WHERE u.record = @record))`,
    )
    .pluck()
  return (record: string): RecordTags => ({
    tags: rows.all(record, MOST).map((row) => {
      return { ...row, fixable: row.fixable === 1, suppressed: row.suppressed === 1 }
    }),
    tagCount: count(record),
    uncertain: uncertain.all({ record }),
  })
}

/** Creates the count of the tags that have findings of a record. */
export function createTagCount(db: Db): (record: string) => number {
  const count = db
    .prepare<[string], number>(
      `SELECT count(DISTINCT l.tag) FROM finding f JOIN tag_component l ON l.component = f.component
       WHERE f.record = ?`,
    )
    .pluck()
  return (record) => count.get(record) ?? 0
}
