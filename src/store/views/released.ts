import type { Db } from '../database/open.ts'

/** Before the names of ecosystems among those of packages: no ecosystem's name has a control character. */
const MARK = '\u0001'
const BEHIND = '\u0002'

/** Returns the name by which a view keeps that a record is of a release: `Debian:12`. It stands among those of packages. */
export function releaseKey(ecosystem: string): string {
  return MARK + ecosystem
}

/** Where the names of packages begin in a view. */
export const FIRST_PACKAGE = BEHIND

/** Creates reads of the releases that the records of a view are of. */
export function createReleaseReader(db: Db) {
  const next = db
    .prepare<[string, string], string>(
      `SELECT a.name FROM view v JOIN affected a ON a.view = v.id
       WHERE v.name = ? AND a.name > ? AND a.name < '${BEHIND}' ORDER BY a.name LIMIT 1`,
    )
    .pluck()
  return {
    /** Returns the ecosystems of a view that its records name, where records are of one release each: `Debian:12`. */
    listReleases(view: string): string[] {
      const found: string[] = []
      let name = next.get(view, MARK)
      while (name !== undefined) {
        found.push(name.slice(MARK.length))
        name = next.get(view, name)
      }
      return found
    },
  }
}
