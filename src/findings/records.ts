import { querySourceOf } from '../api/scanners/query-source.ts'
import type { FindingChangeCounts, FindingChange, FindingCounts } from '../store/findings/reads.ts'
import type { FindingComponent, FindingsStore, StoredFinding } from '../store/findings/writes.ts'
import type { Reads } from '../store/reads.ts'
import { folderOf } from '../store/views/generations.ts'
import type { Views } from '../store/views/reads.ts'
import { MOST_DETAILS, compareFindingSets, isChange } from './compare.ts'
import { type Evaluate, createChangedRecords, createEvaluation } from './evaluate.ts'

/** Counts up when the same records make other findings here. */
const RULES = 1
/** Changed records that are looked at one by one; with more of them everything is compared. */
const MOST_NAMED = 10_000
/** Components that are read at a time. */
const BATCH = 500

interface RecordsInput {
  readonly store: FindingsStore
  readonly views: Views
  /** The generation of views, by its name. */
  readonly generation: string
  /** Reads of one snapshot of the store. */
  readonly changedBetween: (from: string, to: string) => readonly string[] | null
  /** Unix milliseconds. */
  readonly now: number
}

/** What was done: records that changed, null where everything was compared; components that were evaluated; tags that differ. */
export interface RecordsReport {
  readonly records: number | null
  readonly components: number
  readonly tags: number
}

/**
 * Brings all findings to the snapshot that views show, in one transaction. Only the components that a changed record names, or
 * named, are evaluated, against these records alone; all, where the change log does not say which records changed.
 */
export async function followRecords(input: RecordsInput): Promise<RecordsReport> {
  const { store, views, generation, changedBetween } = input
  const { snapshot: osv, asOf: osvAsOf } = views.info
  const form = formOf(views, generation)
  const next = { osv, osvAsOf, form, generation }
  const state = store.readState()
  const isSame = state?.osv === osv && state.form === form
  if (state === null || isSame) {
    if (state?.generation !== generation) store.putRecordState(next)
    return { records: 0, components: 0, tags: 0 }
  }
  const changed = state.form === form ? changedBetween(state.osv, osv) : null
  return store.inOne(async () => {
    const tally = createTally(store)
    const components = await (changed === null
      ? compareAll(input, tally)
      : compareSome(input, tally, changed))
    const tags = tally.close(input.now, osv)
    store.putRecordState(next)
    return { records: changed?.length ?? null, components, tags }
  })
}

/**
 * The rules that findings depend on. Views that do not have all ecosystems may show other ones of an unchanged record the next
 * time: each of their generations has rules of its own.
 */
function formOf({ info: { form } }: Views, generation: string): string {
  return `${RULES} ${form.startsWith('[') ? form : generation}`
}

/** Returns the ids of the records that differ between two snapshots; null when the change log does not say which. */
export function changedRecords(
  { changes }: Pick<Reads, 'changes'>,
  from: string,
  to: string,
): string[] | null {
  const placeOf = (snapshot: string) =>
    changes.findInLog(snapshot).find(({ source }) => source === 'osv')?.after
  const [after, until] = [placeOf(from), placeOf(to)]
  if (after === undefined || until === undefined || until < after) return null
  const span = { source: 'osv' as const, after, until }
  const names = changes.countNames(span)
  if (names === null || names > MOST_NAMED) return null
  return changes.listChanged(span, '', MOST_NAMED).map(({ name }) => name)
}

type Tally = ReturnType<typeof createTally>

async function compareAll({ store, views }: RecordsInput, tally: Tally): Promise<number> {
  const evaluate = createEvaluation(querySourceOf(views))
  let [last, count]: [FindingComponent | null, number] = [null, 0]
  for (;;) {
    const batch: FindingComponent[] = store.listComponents(last, BATCH)
    for (const one of batch) await replace(store, tally, one, evaluate, () => true)
    count += batch.length
    last = batch.at(-1) ?? null
    if (last === null) return count
  }
}

async function compareSome(
  { store, views }: RecordsInput,
  tally: Tally,
  ids: readonly string[],
): Promise<number> {
  const { source, packages } = createChangedRecords(views, ids)
  const evaluate = createEvaluation(source)
  const touched = new Map<number, FindingComponent>()
  for (const { folder, name } of packages)
    for (const one of store.listComponentsNamed(name))
      if (folderOf(one.ecosystem) === folder) touched.set(one.id, one)
  for (const id of ids) for (const one of store.listComponentsWith(id)) touched.set(one.id, one)
  const changed = new Set(ids)
  for (const one of touched.values())
    await replace(store, tally, one, evaluate, (record) => changed.has(record))
  return touched.size
}

/** Replaces those findings of a component whose records are evaluated. */
async function replace(
  store: FindingsStore,
  tally: Tally,
  component: FindingComponent,
  evaluate: Evaluate,
  isEvaluated: (record: string) => boolean,
): Promise<void> {
  const before = store.listFindings(component.id).filter(({ record }) => isEvaluated(record))
  const after = await evaluate(component)
  const [old, now] = [byRecord(before), byRecord(after)]
  for (const { record } of before) if (!now.has(record)) store.dropFinding(component.id, record)
  const differing = after.filter((one) => !isEqual(old.get(one.record), one))
  for (const one of differing) store.putFinding(component.id, one)
  if (differing.length > 0 || before.length !== after.length) tally.add(component, before, after)
}

function byRecord(findings: readonly StoredFinding[]): Map<string, StoredFinding> {
  return new Map(findings.map((one) => [one.record, one]))
}

function isEqual(one: StoredFinding | undefined, other: StoredFinding): boolean {
  return one?.fixable === other.fixable && one.level === other.level
}

type Sums = { -readonly [Name in keyof (FindingChangeCounts & FindingCounts)]: number }

/** Creates what adds up, for each tag, what differs in its components. */
function createTally(store: FindingsStore) {
  const tags = new Map<number, { readonly sums: Sums; readonly details: FindingChange[] }>()
  return {
    add(
      component: FindingComponent,
      before: readonly StoredFinding[],
      after: readonly StoredFinding[],
    ): void {
      const withPackage = (one: StoredFinding) => ({ ...component, ...one })
      const { counts, details, ...changes } = compareFindingSets(
        before.map(withPackage),
        after.map(withPackage),
      )
      const difference = { ...counts, ...changes }
      for (const tag of store.listTagsOf(component.id)) {
        const one = tags.get(tag) ?? { sums: { ...NOTHING }, details: [] }
        tags.set(tag, one)
        for (const name of NAMES) one.sums[name] += difference[name]
        one.details.push(...details.slice(0, MOST_DETAILS - one.details.length))
      }
    },
    /** Stores it, and logs what changed; returns the number of tags in which anything did. */
    close(at: number, snapshot: string): number {
      let logged = 0
      for (const [id, { sums, details }] of tags) {
        const tag = store.countTag(id, sums)
        if (tag === null || !isChange(sums)) continue
        store.addLog({ ...sums, ...tag, at, cause: 'records', snapshot, details })
        logged++
      }
      return logged
    },
  }
}

const NOTHING: Sums = {
  ...{ found: 0, gone: 0, fixes: 0, fixesGone: 0 },
  ...{ findings: 0, fixable: 0, critical: 0, high: 0 },
}
const NAMES = Object.keys(NOTHING) as (keyof Sums)[]
