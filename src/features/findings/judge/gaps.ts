import { type Comparison, whyPartly, whyUncompared } from '../../match/judging/compared.ts'
import type { ComponentGap, FindingComponent, FindingsStore } from '../../../store/findings/writes.ts'
import { type StoredAsked, readAsked } from './asked.ts'
import type { Evaluate } from './evaluate.ts'
import type { RecordedEcosystems } from '../../match/judging/package-source.ts'

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
  readonly recorded: RecordedEcosystems
}

/** Finds the gaps of components, and stores those that differ. */
export type Gaps = ReturnType<typeof createGaps>

/** Reads the ecosystems without records of their release, as they were followed last. */
function readMissing(store: FindingsStore): ReadonlySet<string> {
  return new Set(JSON.parse(store.readFollowed('releases') ?? '[]') as string[])
}

/** Creates what finds and stores the gaps of components. */
export function createGaps({ store, evaluate, recorded }: GapInput) {
  let isAnyChanged = false
  const put = (component: FindingComponent, comparison: Comparison): void => {
    const gap = gapOf(component, comparison, recorded)
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
      const missing = readMissing(store)
      const ecosystems = store.listEcosystems()
      for (const ecosystem of ecosystems) {
        const isKnown = recorded.hasEcosystem(ecosystem)
        const isChanged = missing.has(ecosystem) === recorded.hasRelease(ecosystem)
        for (const one of store.listComponentsOf(ecosystem, isKnown)) await findAgain(one)
        if (isChanged && isKnown) for (const one of store.listComponentsOf(ecosystem, false)) await findAgain(one)
      }
      store.putFollowed('releases', JSON.stringify(ecosystems.filter((one) => !recorded.hasRelease(one))))
    },
    /** Counts the components with a gap in each tag again, where any differs. */
    close(): void {
      if (isAnyChanged) store.countNotJudged(null)
    },
  }
}
