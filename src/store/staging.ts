import type { Db } from './database.ts'
import type { RecordToStore } from './osv.ts'

/**
 * A waiting room for records fetched one by one: a temporary table, so that nothing locks the database while the
 * network is slow, and memory does not follow their number. Gone with the connection.
 */
export function createStaging(db: Db) {
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS staged (
       id TEXT PRIMARY KEY, modified TEXT, crc32 INTEGER, size INTEGER, sha256 BLOB, body BLOB, asOf INTEGER
     )`,
  )
  const put = db.prepare(
    `INSERT OR REPLACE INTO staged (id, modified, crc32, size, sha256, body, asOf)
     VALUES (@id, @modified, @crc32, @size, @sha256, @body, @asOf)`,
  )
  const ids = db.prepare<[], string>('SELECT id FROM staged').pluck()
  const take = db.prepare<[string], RecordToStore>('SELECT * FROM staged WHERE id = ?')
  const any = db.prepare<[], number>('SELECT EXISTS (SELECT 1 FROM staged)').pluck()
  const clear = db.prepare('DELETE FROM staged')
  return {
    stage: (record: RecordToStore): void => {
      put.run(record)
    },
    /** Calls `use` with each staged record; one in memory at a time. */
    eachStaged(use: (record: RecordToStore) => void): void {
      for (const id of ids.all()) {
        const record = take.get(id)
        if (record !== undefined) use(record)
      }
    },
    isEmpty: (): boolean => any.get() !== 1,
    clear: (): void => {
      clear.run()
    },
  }
}

export type Staging = ReturnType<typeof createStaging>
