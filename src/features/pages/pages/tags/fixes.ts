import type { Question } from '../../../../base/identity/identity.ts'
import { type OsvRecord, isNamed } from '../../../scanners/records/affected.ts'
import { askVersion } from '../../../scanners/records/ranges.ts'
import { remedyFor } from '../../../scanners/records/fixes.ts'
import { parseRecord } from '../../../scanners/records/search.ts'
import { type Severity, severityOf } from '../../../../documents/records/severity.ts'
import { readAsked } from '../../../../store/findings/asked.ts'
import type { ListedFinding, TagComponent } from '../../../../store/findings/tag-list.ts'
import { isDamage } from '../../../scanners/routes/generation.ts'
import { folderOf } from '../../../scanners/store/generations.ts'
import type { Views } from '../../../scanners/store/reads.ts'

/** Bytes of records that are read for a page: more would keep other pages waiting. */
const MOST_BYTES = 16 * 2 ** 20

/** What the record of a finding says of it. */
export interface SaidOfFinding {
  readonly severity: Severity
  /** Fixed versions above that of the package, as `match` names them. */
  readonly fixed: readonly string[]
  /**
   * What the record says of another version of the package, which it does not affect: a fixed version that it names is reached, or
   * only that it is about the package; null: it is not.
   */
  readonly judges: (
    component: Pick<TagComponent, 'ecosystem' | 'name' | 'version' | 'asked'>,
  ) => 'fixed' | 'clear' | null
}

/** Creates the function that reads what records say of findings; null for one that cannot be read, or when too much was read. */
export function createRecordReader(
  views: Pick<Views, 'readViewRecord'>,
): (finding: ListedFinding) => SaidOfFinding | null {
  let bytes = 0
  return (finding) => {
    const questions = questionsOf(finding)
    const [first] = questions
    if (first === undefined || bytes > MOST_BYTES) return null
    const read = readOrNull(views, folderOf(first.ecosystem.name), finding.record)
    if (read === null) return null
    bytes += read.content.length
    return saidOf(parseRecord(read.content), read.prefixes[0], questions)
  }
}

function readOrNull(views: Pick<Views, 'readViewRecord'>, folder: string, id: string) {
  try {
    return views.readViewRecord(folder, id)
  } catch (error) {
    if (isDamage(error)) return null
    throw error
  }
}

/** Returns the questions by which a finding was found. */
function questionsOf(finding: ListedFinding): readonly Question[] {
  const { questions = [] } = readAsked(finding) ?? {}
  const { source } = finding
  return questions.filter(({ by, name }) => (source === '' ? by === 'name' : by === 'source' && name === source))
}

function saidOf(record: OsvRecord, vendor: string | undefined, questions: readonly Question[]): SaidOfFinding {
  const remedies = questions.map((one) => remedyFor(record, asked(one), vendor))
  const { fixed = [], severity = severityOf({ ...record }) } =
    remedies.find(({ ecosystems }) => ecosystems.length > 0) ?? {}
  return {
    severity,
    fixed,
    judges(component) {
      const named = (readAsked(component)?.questions ?? []).filter((one) => isNamed(record, asked(one), vendor))
      if (named.length === 0) return null
      const isFixed = named.some((now) =>
        questions.some(
          ({ by, version }) =>
            by === now.by &&
            remedyFor(record, asked({ ...now, version }), vendor).fixed.some((fix) => isReached(fix, now)),
        ),
      )
      return isFixed ? 'fixed' : 'clear'
    },
  }
}

function asked({ ecosystem, name, version, stream }: Question) {
  return { ecosystem, name, version: askVersion(version), stream }
}

/** Whether a version is a fixed one or above it, in the order of its ecosystem. */
function isReached(fix: string, { ecosystem: { order }, version }: Question): boolean {
  const at = order?.read(fix) ?? null
  const is = order?.read(version) ?? null
  return order !== null && at !== null && is !== null && order.compare(at, is) <= 0
}
