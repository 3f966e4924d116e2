import { querySourceOf } from '../../api/scanners/query-source.ts'
import { eachObject, fieldsOf } from '../../json/objects.ts'
import { createFinder } from '../../judging/judge.ts'
import { cvesOf, isFixable } from '../../judging/patches.ts'
import { findEcosystem } from '../../query/orders/ecosystems.ts'
import { type QuerySource, parseRecord } from '../../query/search.ts'
import type { FindingComponent, StoredFinding } from '../../store/findings/writes.ts'
import { packageKey } from '../../identity/names.ts'
import { folderOf } from '../../store/views/generations.ts'
import type { Views } from '../../store/views/reads.ts'
import { writeNames } from './names.ts'
import type { IsPatched } from './patches.ts'

/** A finding, and the names of its record as they are stored. */
interface EvaluatedFinding extends StoredFinding {
  readonly names: string
}

/** Finds what the records of a source say about a package in a version. */
export type Evaluate = (
  component: Omit<FindingComponent, 'id'>,
) => Promise<readonly EvaluatedFinding[]>

/** Creates the evaluation by a source, which is that of `patchmirror match`. Ask for the versions of a package in a row. */
export function createEvaluation(source: QuerySource, isPatched: IsPatched): Evaluate {
  const find = createFinder(source, () => undefined)
  return async ({ ecosystem: named, name, version }) => {
    const ecosystem = findEcosystem(named)
    if (ecosystem === null) return []
    const found = await find({ ecosystem, name, version, pageToken: '' })
    return found.map(({ id, aliases, upstream, fixed, severity: { level } }) => ({
      record: id,
      fixable: isFixable({ fixed, patches: [] }) ? 1 : 0,
      patched: isPatched({ ecosystem: named, name }, cvesOf({ id, aliases, upstream })) ? 1 : 0,
      level: level === 'critical' ? 0 : level === 'high' ? 1 : 2,
      names: writeNames({ aliases, upstream }),
    }))
  }
}

/** A package as an index of views names it. */
interface RecordedPackage {
  readonly folder: string
  /** Of `packageKey`. */
  readonly name: string
}

/** Some of the records, and the packages that they name now. */
interface ChangedRecords {
  readonly source: QuerySource
  readonly packages: readonly RecordedPackage[]
}

/** Creates a source of some of the records of a generation of views; those that it does not have name nothing. */
export function createChangedRecords(
  views: Pick<Views, 'listViewsOf' | 'readViewRecord' | 'listCandidates'>,
  ids: readonly string[],
): ChangedRecords {
  const byPackage = new Map<string, { readonly of: RecordedPackage; readonly ids: Set<string> }>()
  for (const id of [...ids].sort())
    for (const folder of views.listViewsOf(id)) {
      for (const name of namesIn(views.readViewRecord(folder, id)?.content, folder)) {
        const key = JSON.stringify([folder, name])
        const same = byPackage.get(key) ?? { of: { folder, name }, ids: new Set<string>() }
        byPackage.set(key, same)
        same.ids.add(id)
      }
    }
  return {
    packages: [...byPackage.values()].map(({ of }) => of),
    source: {
      ...querySourceOf(views),
      listCandidates(ecosystem, name, after, limit) {
        const key = JSON.stringify([folderOf(ecosystem), packageKey(ecosystem, name)])
        const listed = [...(byPackage.get(key)?.ids ?? [])].filter((id) => id > after)
        return listed.slice(0, limit).map((id) => ({ id }))
      },
    },
  }
}

/** The packages of an ecosystem's folder that a record names, as the index of views has them. */
function namesIn(content: Buffer | undefined, folder: string): Set<string> {
  const names = new Set<string>()
  if (content === undefined) return names
  for (const { package: named } of eachObject(parseRecord(content).affected)) {
    const { ecosystem, name } = fieldsOf(named)
    if (typeof ecosystem !== 'string' || typeof name !== 'string') continue
    if (folderOf(ecosystem) === folder) names.add(packageKey(ecosystem, name))
  }
  return names
}
