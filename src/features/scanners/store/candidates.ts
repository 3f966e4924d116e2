import type { Db } from '../../../store/database/open.ts'
import { packageKey, packageKeys } from '../../../base/identity/names.ts'
import { folderOf } from './generations.ts'
import { NUMBER_UP_TO } from './numbers.ts'

/** A record that may affect a package; `derived` determines which form of it the ecosystem's view shows. */
interface Candidate {
  readonly id: string
  readonly derived: boolean
}

/** Creates reads of the packages that records name. */
export function createCandidateReader(db: Db) {
  const candidates = db
    .prepare<[string, string, string, number], [string, number]>(
      `SELECT r.id, m.derived FROM view v JOIN affected a ON a.view = v.id
       JOIN member m ON m.view = a.view AND m.num = a.num JOIN record r ON r.num = a.num
       WHERE v.name = ? AND a.name = ? AND a.num > ${NUMBER_UP_TO} ORDER BY a.num LIMIT ?`,
    )
    .raw()
  const recorded = db
    .prepare<[string, string], string>(
      `SELECT n.value FROM view v CROSS JOIN json_each(?) n
       WHERE v.name = ? AND EXISTS (SELECT 1 FROM affected a WHERE a.view = v.id AND a.name = n.value)`,
    )
    .pluck()
  const named = db
    .prepare<[string, string, number], [string, number]>(
      `SELECT DISTINCT r.id, 0 FROM json_each(?) k
       JOIN affected a ON a.view = k.value->>0 AND a.name = k.value->>1 JOIN record r ON r.num = a.num
       WHERE a.num > ${NUMBER_UP_TO} ORDER BY a.num LIMIT ?`,
    )
    .raw()
  const views = db.prepare<[], { id: number; name: string }>('SELECT id, name FROM view')
  const prefixes = db.prepare<[], string>('SELECT DISTINCT p.value FROM view, json_each(view.prefixes) p').pluck()
  let vendors: ReadonlySet<string> | null = null // a finished generation does not change
  const viewOf = db.prepare<[string], number>('SELECT id FROM view WHERE name = ?').pluck()
  /** In a vendor's folder, a package may have the name that another ecosystem gives it. */
  const ofVendor = (vendor: string, name: string, after: string, limit: number): Candidate[] => {
    const keys = packageKeys(vendor, name).map((key) => [viewOf.get(vendor), key])
    const rows = named.all(JSON.stringify(keys), after, limit)
    return rows.map(([id]) => ({ id, derived: false }))
  }
  return {
    /** Returns the records that name a package of this name in any ecosystem, as `listCandidates` does. */
    listNamed(name: string, after: string, limit: number): Pick<Candidate, 'id'>[] {
      const keys = views.all().flatMap(({ id, name: view }) => packageKeys(view, name).map((key) => [id, key]))
      return named.all(JSON.stringify(keys), after, limit).map(([id]) => ({ id }))
    },
    /** Returns those of many packages that any record names; ecosystem and names as for `listCandidates`. */
    listRecorded(ecosystem: string, names: readonly string[]): Set<string> {
      const keys = names.map((name) => packageKey(ecosystem, name))
      const found = new Set(recorded.all(JSON.stringify(keys), folderOf(ecosystem)))
      return new Set(names.filter((_, at) => found.has(keys[at] ?? '')))
    },
    /**
     * Returns records that name a package, in id order after `after` (''), at most `limit`. A suffix of the ecosystem
     * (`Debian:12`) and versions are not compared here. Names are compared by `packageKey`.
     */
    listCandidates(ecosystem: string, name: string, after: string, limit: number): Candidate[] {
      const folder = folderOf(ecosystem)
      vendors ??= new Set(prefixes.all())
      if (folder === ecosystem && vendors.has(folder)) return ofVendor(folder, name, after, limit)
      const rows = candidates.all(folder, packageKey(ecosystem, name), after, limit)
      return rows.map(([id, derived]) => ({ id, derived: derived === 1 }))
    },
  }
}
