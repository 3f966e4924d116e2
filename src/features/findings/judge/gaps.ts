import { type Comparison, whyPartly, whyUncompared } from '../../match/judging/compared.ts'
import type { ComponentGap, FindingComponent, FindingsStore } from '../../../store/findings/writes.ts'
import { type StoredAsked, readAsked } from './asked.ts'
import type { Evaluate } from './evaluate.ts'

/** Whether there is any record of an ecosystem, and of its release where the name has one. */
type HasEcosystem = (name: string) => boolean

/** Returns why a component is not judged, or not completely, as `match` has it. */
export function gapOf(component: StoredAsked, comparison: Comparison, hasEcosystem: HasEcosystem): ComponentGap {
  const identity = readAsked(component)
  if (identity === null) return 2
  const why = whyPartly(identity, { hasEcosystem }) ?? whyUncompared(identity, comparison)
  if (why === null) return 0
  if (why.code === 'no_records') return 2
  return why.code === 'ambiguous' ? 3 : 1
}

/** What gaps are found by. */
interface GapInput {
  readonly store: FindingsStore
  /** By all records. */
  readonly evaluate: Evaluate
  readonly hasEcosystem: HasEcosystem
}

/** Finds the gaps of components, and stores those that differ. */
export type Gaps = ReturnType<typeof createGaps>

/** Creates what finds and stores the gaps of components. */
export function createGaps({ store, evaluate, hasEcosystem }: GapInput) {
  let isAnyChanged = false
  const put = (component: FindingComponent, comparison: Comparison): void => {
    const gap = gapOf(component, comparison, hasEcosystem)
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
      for (const ecosystem of store.listEcosystems()) {
        const isKnown = hasEcosystem(ecosystem)
        for (const one of store.listComponentsOf(ecosystem, isKnown)) await findAgain(one)
      }
    },
    /** Counts the components with a gap in each tag again, where any differs. */
    close(): void {
      if (isAnyChanged) store.countNotJudged(null)
    },
  }
}
