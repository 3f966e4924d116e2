import { querySourceOf } from '../../scanners/routes/query-source.ts'
import { listRecorded } from '../../match/judging/package-source.ts'
import { isWithdrawn } from '../../scanners/records/affected.ts'
import { type QuerySource, parseRecord } from '../../scanners/records/search.ts'
import type { GoneReason } from '../../../store/findings/reads.ts'
import type { FindingComponent, FindingsStore, StoredFinding } from '../../../store/findings/writes.ts'
import type { Reads } from '../../../store/reads.ts'
import type { DatedSnapshot } from '../../../store/runs/rollback.ts'
import { folderOf } from '../../scanners/store/generations.ts'
import type { Views } from '../../scanners/store/reads.ts'
import { type Evaluate, createChangedRecords, createEvaluation } from './evaluate.ts'
import { type Gaps, createGaps, putRecorded } from './gaps.ts'
import { readNames } from './names.ts'
import type { IsPatched } from './patches.ts'
import { FINDINGS_RULES } from './rules.ts'
import { type Hidden, type Tally, createTally, hiddenOf } from './tally.ts'
import type { VexQuestion, VexRules } from './vex.ts'

/** Changed records that are looked at one by one; with more of them everything is compared. */
const MOST_NAMED = 10_000
/** Components that are read at a time. */
const BATCH = 500

interface RecordsInput {
  readonly store: FindingsStore
  readonly rules: VexRules
  readonly isPatched: IsPatched
  readonly views: Views
  /** The generation of views, by its name. */
  readonly generation: string
  /** The settings of the scope that the snapshot was made with, as text; null: it is not known. */
  readonly scope: string | null
  /** Whether the snapshot has older data than another one. */
  readonly isBackFrom: (from: DatedSnapshot) => boolean
  /** Reads of one snapshot of the store. */
  readonly changedBetween: (from: string, to: string) => readonly string[] | null
  /** Why a record that no view shows is not there; null: it is stored. */
  readonly whyNotStored: (record: string) => 'removed' | 'left' | null
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
    if (state === null) putRecorded(store, listRecorded(views))
    putScope(input)
    return { records: 0, components: 0, tags: 0 }
  }
  const changed = state.form === form ? changedBetween(state.osv, osv) : null
  return store.inOne(async () => {
    const tally = createTally(store)
    const components = await (changed === null ? compareAll(input, tally) : compareSome(input, tally, changed))
    putRecorded(store, listRecorded(views))
    const cause = causeOf(input, { snapshot: state.osv, asOf: state.osvAsOf })
    const tags = tally.close({ at: input.now, cause, snapshot: osv })
    putScope(input)
    store.putRecordState(next)
    return { records: changed?.length ?? null, components, tags }
  })
}

/**
 * Whether records changed, older data came back, or other records are mirrored: what is gone by these two is not known to be fixed.
 * Unknown, where one of the two scopes is.
 */
function causeOf(
  { store, scope, isBackFrom }: RecordsInput,
  judgedBy: DatedSnapshot,
): 'records' | 'scope' | 'rollback' | 'unknown' {
  if (isBackFrom(judgedBy)) return 'rollback'
  const before = store.readFollowed('scope') ?? NOT_KNOWN
  if (scope === null || before === NOT_KNOWN) return 'unknown'
  return scope === before ? 'records' : 'scope'
}

/** What is stored as the scope that is not known. */
const NOT_KNOWN = ''

function putScope({ store, scope }: RecordsInput): void {
  store.putFollowed('scope', scope ?? NOT_KNOWN)
}

/**
 * The rules that findings depend on. Views that do not have all ecosystems may show other ones of an unchanged record the next
 * time: each of their generations has rules of its own.
 */
function formOf({ info: { form } }: Views, generation: string): string {
  return `${FINDINGS_RULES} ${form.startsWith('[') ? form : generation}`
}

/** Returns the ids of the records that differ between two snapshots; null when the change log does not say which. */
export function changedRecords({ changes }: Pick<Reads, 'changes'>, from: string, to: string): string[] | null {
  const placeOf = (snapshot: string) => changes.findInLog(snapshot).find(({ source }) => source === 'osv')?.after
  const after = placeOf(from)
  const until = placeOf(to)
  if (after === undefined || until === undefined || until < after) return null
  const span = { source: 'osv' as const, after, until }
  const names = changes.countNames(span)
  if (names === null || names > MOST_NAMED) return null
  return changes.listChanged(span, '', MOST_NAMED).map(({ name }) => name)
}

/** What the components of a run are compared with. */
interface Comparing {
  readonly tally: Tally
  readonly evaluate: Evaluate
  /** Whether these are all records. */
  readonly isWhole: boolean
  readonly gaps: Gaps
  /** The names of a record as they were stored before the run. */
  readonly namesBefore: (record: string) => string | null
  /** Why a record that was compared is no finding any more. */
  readonly whyCleared: (record: string) => GoneReason
}

/** Creates the function that says why a record that was compared is no finding any more. */
function createWhyCleared({ views, whyNotStored }: RecordsInput): Comparing['whyCleared'] {
  const known = new Map<string, GoneReason>()
  const find = (record: string): GoneReason => {
    const [view] = views.listViewsOf(record)
    const shown = view === undefined ? null : views.readViewRecord(view, record)
    if (shown === null) return whyNotStored(record) ?? 'cleared'
    return isWithdrawn(parseRecord(shown.content)) ? 'withdrawn' : 'cleared'
  }
  return (record) => {
    const why = known.get(record) ?? find(record)
    known.set(record, why)
    return why
  }
}

function comparing(input: RecordsInput, tally: Tally, some: QuerySource | null): Comparing {
  const { store, isPatched, views } = input
  const names = new Map<string, string | null>()
  const all = createEvaluation(querySourceOf(views), isPatched)
  return {
    tally,
    evaluate: some === null ? all : createEvaluation(some, isPatched),
    isWhole: some === null,
    gaps: createGaps({ store, evaluate: all, recorded: listRecorded(views) }),
    whyCleared: createWhyCleared(input),
    namesBefore(record) {
      const before = names.has(record) ? names.get(record) : store.readNames(record)
      names.set(record, before ?? null)
      return before ?? null
    },
  }
}

async function compareAll(input: RecordsInput, tally: Tally): Promise<number> {
  const { store } = input
  const by = comparing(input, tally, null)
  let last: FindingComponent | null = null
  let count: number = 0
  for (;;) {
    const batch: FindingComponent[] = store.listComponents(last, BATCH)
    await compare(input, by, batch, () => true)
    count += batch.length
    last = batch.at(-1) ?? null
    if (last !== null) continue
    by.gaps.close()
    return count
  }
}

async function compareSome(input: RecordsInput, tally: Tally, ids: readonly string[]): Promise<number> {
  const { store, views } = input
  const { source, packages } = createChangedRecords(views, ids)
  const by = comparing(input, tally, source)
  const touched = new Map<number, FindingComponent>()
  for (const { folder, name } of packages)
    for (const one of store.listComponentsNamed(name)) if (folderOf(one.ecosystem) === folder) touched.set(one.id, one)
  for (const id of ids) for (const one of store.listComponentsJudgedBy(id)) touched.set(one.id, one)
  const changed = new Set(ids)
  const components = [...touched.values()]
  for (let at = 0; at < components.length; at += BATCH)
    await compare(input, by, components.slice(at, at + BATCH), (record) => changed.has(record))
  await by.gaps.followEcosystems()
  by.gaps.close()
  return touched.size
}

/** What differs in a component. */
interface ChangedComponent {
  readonly component: FindingComponent
  readonly before: readonly StoredFinding[]
  readonly after: readonly StoredFinding[]
  /** What VEX ruled out, and what is left of that; the answers to the questions are added. */
  readonly was: Hidden
  readonly is: Map<number, Set<string>>
  readonly whyGone: (record: string) => GoneReason
  readonly questions: readonly VexQuestion[]
}

/** Replaces those findings of components whose records are evaluated, and what VEX rules out of them in each tag. */
async function compare(
  input: RecordsInput,
  by: Comparing,
  components: readonly FindingComponent[],
  isEvaluated: (record: string) => boolean,
): Promise<void> {
  const changes: ChangedComponent[] = []
  for (const one of components) {
    const change = await replace(input, by, one, isEvaluated)
    if (change !== null) changes.push(change)
  }
  ruleOut(input, changes)
  for (const change of changes) {
    storeHidden(input.store, change.component.id, change.was, change.is)
    by.tally.add(change, change.was, change.is)
  }
}

async function replace(
  { store, rules }: RecordsInput,
  { evaluate, namesBefore, whyCleared, gaps, isWhole }: Comparing,
  component: FindingComponent,
  isEvaluated: (record: string) => boolean,
): Promise<ChangedComponent | null> {
  const before = store.listFindings(component.id).filter(({ record }) => isEvaluated(record))
  const { findings: after, comparison } = await evaluate(component)
  await gaps.follow(component, comparison, isWhole)
  const old = byRecord(before)
  const now = byRecord(after)
  const gone = before.filter(({ record }) => !now.has(record))
  const differing = after.filter((one) => !isEqual(old.get(one.record), one))
  const renamed = new Set(after.filter(({ record, names }) => namesBefore(record) !== names))
  const asked = after.filter((one) => !old.has(one.record) || renamed.has(one))
  if (gone.length + differing.length + asked.length === 0) return null
  for (const { record } of gone) store.dropFinding(component.id, record)
  for (const one of differing) store.putFinding(component.id, one)
  for (const { record, names } of renamed) store.putNames(record, names)
  const was = hiddenOf(store, component.id)
  const open = new Set([...gone, ...asked].map(({ record }) => record))
  const is = new Map([...was].map(([tag, records]) => [tag, without(records, open)]))
  const named = asked.map(({ record, names }) => ({ record, names: readNames(names) }))
  const whyGone = (record: string): GoneReason =>
    comparison.uncompared.has(record) ? 'uncompared' : whyCleared(record)
  return { component, before, after, was, is, whyGone, questions: rules.ask(component, named) }
}

/** Asks VEX about all questions of a tag at once: a document about it is read once for them. */
function ruleOut({ store, rules }: RecordsInput, changes: readonly ChangedComponent[]): void {
  const byTag = new Map<number, VexQuestion[]>()
  for (const { component, questions } of changes)
    for (const tag of questions.length === 0 ? [] : store.listTagsOf(component.id)) {
      const ofTag = byTag.get(tag) ?? []
      byTag.set(tag, ofTag)
      for (const one of questions) ofTag.push(one)
    }
  const byComponent = new Map(changes.map((one) => [one.component.id, one.is]))
  for (const [tag, questions] of byTag)
    for (const { component, record } of rules.ruledOut(tag, questions)) {
      const is = byComponent.get(component.id)
      is?.set(tag, (is.get(tag) ?? new Set()).add(record))
    }
}

/** Writes what VEX rules out of the findings of a component, as far as it differs. */
function storeHidden(store: FindingsStore, component: number, was: Hidden, is: Hidden): void {
  for (const tag of new Set([...was.keys(), ...is.keys()])) {
    const old = was.get(tag) ?? new Set<string>()
    const now = is.get(tag) ?? new Set<string>()
    for (const record of without(old, now)) store.unsuppress({ component, tag, record })
    for (const record of without(now, old)) store.suppress({ component, tag, record })
  }
}

function without(records: ReadonlySet<string>, others: ReadonlySet<string>): Set<string> {
  return new Set([...records].filter((record) => !others.has(record)))
}

function byRecord<Finding extends StoredFinding>(findings: readonly Finding[]): Map<string, Finding> {
  return new Map(findings.map((one) => [one.record, one]))
}

function isEqual(one: StoredFinding | undefined, other: StoredFinding): boolean {
  const { fixable, patched, level, source } = other
  if (one === undefined || one.source !== source) return false
  return one.fixable === fixable && one.patched === patched && one.level === level
}
