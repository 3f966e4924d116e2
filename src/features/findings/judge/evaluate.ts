import { querySourceOf } from '../../scanners/routes/query-source.ts'
import { eachObject } from '../../../base/json/objects.ts'
import { type Comparison, NO_RECORDS, addComparison } from '../../match/judging/compared.ts'
import { type PackageFinding, createFinder, joinFindings } from '../../match/judging/finder.ts'
import { cvesOf, isFixable } from '../../match/judging/patches.ts'
import { type QuerySource, parseRecord } from '../../scanners/records/search.ts'
import { LEVELS } from '../../../documents/records/severity.ts'
import type { StoredFinding } from '../../../store/findings/writes.ts'
import { recordedPackage } from '../../../base/identity/recorded.ts'
import { packageKey } from '../../../base/identity/names.ts'
import { folderOf } from '../../scanners/store/generations.ts'
import type { Views } from '../../scanners/store/reads.ts'
import { type StoredAsked, readAsked } from '../../../store/findings/asked.ts'
import { writeNames } from './names.ts'
import type { IsPatched } from './patches.ts'

/** A finding, and the names of its record as they are stored. */
interface EvaluatedFinding extends StoredFinding {
  readonly names: string
}

/** What the records of a source say about a package in a version. */
interface EvaluatedComponent {
  readonly findings: readonly EvaluatedFinding[]
  /** What they were compared with. */
  readonly comparison: Comparison
}

/** Finds what the records of a source say about a package in a version. */
export type Evaluate = (component: StoredAsked) => Promise<EvaluatedComponent>

/** Creates the evaluation by a source, which is that of `patchmirror match`. Ask for the versions of a package in a row. */
export function createEvaluation(source: QuerySource, isPatched: IsPatched): Evaluate {
  const check = () => undefined
  // The records of one package are kept for its versions: names and sources come in two orders.
  const finders = { name: createFinder(source, check), source: createFinder(source, check) }
  return async (component) => {
    const found = new Map<string, PackageFinding>()
    let comparison = NO_RECORDS
    for (const question of readAsked(component)?.questions ?? []) {
      const { findings, ...compared } = await finders[question.by](question)
      joinFindings(found, findings)
      comparison = addComparison(comparison, compared)
    }
    const findings = [...found.values()].map((one) => toStored(one, component, isPatched))
    return { findings, comparison }
  }
}

function toStored(
  { id, aliases, upstream, fixed, source, severity: { level } }: PackageFinding,
  component: StoredAsked,
  isPatched: IsPatched,
): EvaluatedFinding {
  return {
    record: id,
    fixable: isFixable({ fixed, patches: [] }) ? 1 : 0,
    patched: isPatched(component, cvesOf({ id, aliases, upstream })) ? 1 : 0,
    level: level === null ? LEVELS.length : LEVELS.indexOf(level),
    source: source ?? '',
    names: writeNames({ aliases, upstream }),
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
  for (const affected of eachObject(parseRecord(content).affected)) {
    const named = recordedPackage(affected)
    if (named !== null && folderOf(named.ecosystem) === folder) names.add(packageKey(named.ecosystem, named.name))
  }
  return names
}
