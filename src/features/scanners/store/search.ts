import type { Db } from '../../../store/database/open.ts'
import { packageKey, packageKeys } from '../../../base/identity/names.ts'
import { NUMBER_UP_TO } from './numbers.ts'
import { queries } from '../../../store/database/query.ts'

/** A package that records of an ecosystem name. */
interface NamedPackage {
  readonly ecosystem: string
  readonly name: string
  /** Records that name it. */
  readonly records: number
}

/** Creates searches of a generation of views by index. */
export function createViewSearch(db: Db) {
  return { ...createAliasSearch(db), ...createPackageSearch(db) }
}

function createAliasSearch(db: Db) {
  const { list } = queries(db)
  const aliases = db
    .prepare<[string, string, number], string>(
      `SELECT r.id FROM alias a JOIN record r ON r.num = a.num
       WHERE a.name = ? AND a.num > ${NUMBER_UP_TO} ORDER BY a.num LIMIT ?`,
    )
    .pluck()
  return {
    /** Records that name another id (`aliases`, `upstream`, `related`), after `after`. */
    listAliasIds: (name: string, after: string, limit: number): string[] =>
      aliases.all(name.toUpperCase(), after, limit),
    /** Ecosystems whose views contain a record. */
    listViewsOf: list<[id: string], string>(
      `SELECT v.name FROM record r, json_each(r.views) e JOIN view v ON v.id = e.value
       WHERE r.id = ? ORDER BY v.name`,
    ),
  }
}

function createPackageSearch(db: Db) {
  const views = db.prepare<[], { id: number; name: string }>('SELECT id, name FROM view ORDER BY name')
  const view = db.prepare<[string], number>('SELECT id FROM view WHERE name = ?').pluck()
  const first = db
    .prepare<[number, string], string>('SELECT name FROM affected WHERE view = ? AND name >= ? ORDER BY name LIMIT 1')
    .pluck()
  const next = db
    .prepare<[number, string], string>('SELECT name FROM affected WHERE view = ? AND name > ? ORDER BY name LIMIT 1')
    .pluck()
  const count = db
    .prepare<[number, string], number>('SELECT count(*) FROM affected WHERE view = ? AND name = ?')
    .pluck()
  const packageIn = (id: number, ecosystem: string, name: string): NamedPackage => {
    return { ecosystem, name, records: count.get(id, name) ?? 0 }
  }
  return {
    /** Packages of this name in any case, those of each ecosystem; about `limit` at most. */
    listPackagesNamed(name: string, limit: number): NamedPackage[] {
      const found: NamedPackage[] = []
      for (const { id, name: ecosystem } of views.all()) {
        for (const key of packageKeys(ecosystem, name)) {
          const one = packageIn(id, ecosystem, key)
          if (one.records > 0) found.push(one)
        }
        if (found.length >= limit) break
      }
      return found
    },
    /** Packages of an ecosystem's folder whose names begin with `prefix`, as it compares names, in order after `after`. */
    listPackages(ecosystem: string, prefix: string, after: string, limit: number): NamedPackage[] {
      const id = view.get(ecosystem)
      const found: NamedPackage[] = []
      if (id === undefined) return found
      const begin = packageKey(ecosystem, prefix)
      let name = after > begin ? next.get(id, after) : first.get(id, begin)
      while (found.length < limit && name?.startsWith(begin) === true) {
        found.push(packageIn(id, ecosystem, name))
        name = next.get(id, name)
      }
      return found
    },
  }
}
