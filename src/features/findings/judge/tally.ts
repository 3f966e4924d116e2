import type {
  FindingChange,
  FindingChangeCounts,
  FindingCounts,
  GoneReason,
  LoggedFindings,
} from '../../../store/findings/reads.ts'
import type { FindingComponent, FindingsStore, StoredFinding } from '../../../store/findings/writes.ts'
import { MOST_DETAILS, compareFindingSets, isChange } from './compare.ts'

/** Records whose findings of a component VEX rules out, by the numbers of tags. */
export type Hidden = ReadonlyMap<number, ReadonlySet<string>>

/** Returns the findings of a component that VEX rules out. */
export function hiddenOf(store: FindingsStore, component: number): Map<number, Set<string>> {
  const hidden = new Map<number, Set<string>>()
  for (const { tag, record } of store.listSuppressedOf(component)) {
    const records = hidden.get(tag) ?? new Set()
    hidden.set(tag, records.add(record))
  }
  return hidden
}

type Sums = { -readonly [Name in keyof (FindingChangeCounts & FindingCounts)]: number }

/** Two states of the findings of a component. */
interface ComponentChange {
  readonly component: FindingComponent
  readonly before: readonly StoredFinding[]
  readonly after: readonly StoredFinding[]
  /** Says why a record is not found any more. */
  readonly whyGone: (record: string) => GoneReason
}

interface Difference extends FindingChangeCounts, FindingCounts {
  readonly details: readonly FindingChange[]
}

export type Tally = ReturnType<typeof createTally>

/** Creates what adds up, for each tag, what differs in its components. */
export function createTally(store: FindingsStore) {
  const tags = new Map<number, { readonly sums: Sums; readonly details: FindingChange[] }>()
  return {
    /** `was`, `is`: what VEX rules out, before and after. */
    add(change: ComponentChange, was: Hidden, is: Hidden): void {
      const plain = compare(change, NONE, NONE)
      for (const tag of store.listTagsOf(change.component.id)) {
        const old = was.get(tag)
        const now = is.get(tag)
        const isPlain = old === undefined && now === undefined
        const { details, ...difference } = isPlain ? plain : compare(change, old ?? NONE, now ?? NONE)
        const one = tags.get(tag) ?? { sums: { ...NOTHING }, details: [] }
        tags.set(tag, one)
        for (const name of NAMES) one.sums[name] += difference[name]
        one.details.push(...details.slice(0, MOST_DETAILS - one.details.length))
      }
    },
    /** Stores it, and logs what changed; returns the number of tags in which anything did. */
    close({ at, cause, snapshot }: Pick<LoggedFindings, 'at' | 'cause' | 'snapshot'>): number {
      let logged = 0
      for (const [id, { sums, details }] of tags) {
        const tag = store.countTag(id, sums)
        if (tag === null || !isChange(sums)) continue
        store.addLog({ ...sums, ...tag, at, cause, snapshot, details })
        logged++
      }
      return logged
    },
  }
}

function compare(
  { component, before, after, whyGone }: ComponentChange,
  was: ReadonlySet<string>,
  is: ReadonlySet<string>,
): Difference {
  const withPackage = (one: StoredFinding) => ({ ...component, ...one })
  const { counts, details, ...changes } = compareFindingSets(
    before.filter(({ record }) => !was.has(record)).map(withPackage),
    after.filter(({ record }) => !is.has(record)).map(withPackage),
    ({ record }) => (is.has(record) ? 'vex' : whyGone(record)),
  )
  const hiddenIn = (findings: readonly StoredFinding[], hidden: ReadonlySet<string>): number =>
    findings.filter(({ record }) => hidden.has(record)).length
  const suppressed = hiddenIn(after, is) - hiddenIn(before, was)
  return { ...counts, ...changes, suppressed, details }
}

const NONE: ReadonlySet<string> = new Set()
const NOTHING: Sums = {
  found: 0,
  foundFixable: 0,
  gone: 0,
  goneFixable: 0,
  fixes: 0,
  fixesGone: 0,
  findings: 0,
  fixable: 0,
  critical: 0,
  high: 0,
  suppressed: 0,
}
const NAMES = Object.keys(NOTHING) as (keyof Sums)[]
