import type { Db } from '../../../store/database/open.ts'
import type { Archive, MemberPlace } from './archives.ts'
import { packageKey } from '../../../base/identity/names.ts'
import { folderOf } from './generations.ts'

/** A record that names a package, as the package's ecosystem shows it. */
interface PackageRecord<Shown> {
  readonly id: string
  /** Throws `corrupt` for damaged bytes. */
  readonly read: () => Shown
}

/** Creates reads of the records of many packages at once: a statement for each costs ten times as much. */
export function createPackageRecords<Shown>(
  db: Db,
  archiveOf: (name: string) => Archive | null,
  readMember: (archive: Archive, place: MemberPlace) => Shown,
) {
  const placed = db
    .prepare<[string, number, number], [at: number, id: string, ...place: MemberPlace]>(
      `SELECT n.key, r.id, m.num, m.place, m.length, m.size, m.crc32, iif(m.derived, r.prefixes, '[]')
       FROM json_each(?) n CROSS JOIN affected a ON a.view = ? AND a.name = n.value
       CROSS JOIN member m ON m.view = a.view AND m.num = a.num CROSS JOIN record r ON r.num = a.num LIMIT ?`,
    )
    .raw()
  return {
    /**
     * Returns the records that name each of many packages, in id order, as `listCandidates` does, and how many packages from
     * the first on it has completely: all of them, where they have fewer than `limit` records together.
     */
    listPackageRecords(ecosystem: string, names: readonly string[], limit: number) {
      const records = new Map<string, PackageRecord<Shown>[]>()
      const archive = archiveOf(folderOf(ecosystem))
      if (archive === null) return { records, complete: names.length }
      const keys = JSON.stringify(names.map((name) => packageKey(ecosystem, name)))
      const rows = placed.all(keys, archive.view, limit) // in the order of the joins, which CROSS fixes
      const complete = rows.length < limit ? names.length : (rows.at(-1)?.[0] ?? 0)
      for (const [at, id, ...place] of rows) {
        if (at >= complete) break
        const name = names[at] ?? ''
        const listed = records.get(name) ?? []
        if (listed.push({ id, read: () => readMember(archive, place) }) === 1) records.set(name, listed)
      }
      return { records, complete }
    },
  }
}
