import { type Comparison, whyPartly, whyUncompared } from '../../match/judging/compared.ts'
import type { ComponentGap, FindingComponent, FindingsStore } from '../../../store/findings/writes.ts'
import { type StoredAsked, readAsked } from '../../../store/findings/asked.ts'
import type { Evaluate } from './evaluate.ts'
import { type RecordedEcosystems, ecosystemsOf } from '../../match/judging/package-source.ts'

/** Returns why a component is not judged, or not completely, as `match` has it. */
export function gapOf(component: StoredAsked, comparison: Comparison, recorded: RecordedEcosystems): ComponentGap {
  const identity = readAsked(component)
  if (identity === null) return 2
  const why = whyPartly(identity, recorded) ?? whyUncompared(identity, comparison)
  if (why === null) return 0
  if (why.code === 'no_records') return 2
  return why.code === 'ambiguous' ? 3 : 1
}

/** What gaps are found by. */
interface GapInput {
  readonly store: FindingsStore
  /** By all records. */
  readonly evaluate: Evaluate
  /** The ecosystems that have records. */
  readonly recorded: readonly string[]
}

/** Finds the gaps of components, and stores those that differ. */
export type Gaps = ReturnType<typeof createGaps>

/** Stores the ecosystems that had records when all components were judged: what the next judgement finds differences to. */
export function putRecorded(store: FindingsStore, recorded: readonly string[]): void {
  store.putFollowed('ecosystems', JSON.stringify(recorded))
}

/** Components that are read at a time. */
const BATCH = 500

/** Creates what finds and stores the gaps of components. */
export function createGaps({ store, evaluate, recorded }: GapInput) {
  let isAnyChanged = false
  const known = ecosystemsOf(recorded)
  const put = (component: FindingComponent, comparison: Comparison): void => {
    const gap = gapOf(component, comparison, known)
    if (component.gap !== 0 || comparison.uncompared.size > 0)
      store.replaceUncompared(component.id, comparison.uncompared.keys())
    if (component.gap === gap) return
    store.putGap(component.id, gap)
    isAnyChanged = true
  }
  const findAgain = async (component: FindingComponent): Promise<void> => {
    const { comparison } = await evaluate(component)
    put(component, comparison)
  }
  return {
    /** `isWhole`: it was compared with all records; else with those that changed, and what it says is only a sign. */
    async follow(component: FindingComponent, comparison: Comparison, isWhole: boolean) {
      if (isWhole) put(component, comparison)
      else if (component.gap !== 0 || comparison.uncompared.size > 0) await findAgain(component)
    },
    /** Looks at the components of ecosystems and releases of which the first record came, or the last one went. */
    async followEcosystems(): Promise<void> {
      const text = store.readFollowed('ecosystems')
      if (text === JSON.stringify(recorded)) return
      const before = ecosystemsOf(JSON.parse(text ?? '[]') as string[])
      const isOtherwise = (one: StoredAsked): boolean => text === null || isKnownOtherwise(one, before, known)
      let last: FindingComponent | null = null
      do {
        const batch: FindingComponent[] = store.listComponents(last, BATCH)
        for (const one of batch.filter(isOtherwise)) await findAgain(one)
        last = batch.at(-1) ?? null
      } while (last !== null)
    },
    /** Counts the components with a gap in each tag again, where any differs. */
    close(): void {
      if (isAnyChanged) store.countNotJudged(null)
    },
  }
}

/** Whether other ecosystems or releases that a component is asked for have records than before. */
function isKnownOtherwise(component: StoredAsked, before: RecordedEcosystems, now: RecordedEcosystems): boolean {
  const questions = readAsked(component)?.questions ?? []
  return questions.some(({ ecosystem: { name } }) => {
    if (before.hasEcosystem(name) !== now.hasEcosystem(name)) return true
    return before.hasRelease(name) !== now.hasRelease(name)
  })
}
