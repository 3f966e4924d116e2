import type { DerivedData, DerivedFault, DerivedSettings, Feature } from './feature.ts'

/** A damaged kind of derived data. */
interface Damaged extends DerivedFault {
  /** For messages: what it is, with its kind. */
  readonly name: string
  readonly makeAgain: (settings: DerivedSettings) => Promise<unknown>
}

/** Loads what checks derived data. */
export async function loadDerived(features: readonly Feature[]): Promise<readonly DerivedData[]> {
  return Promise.all(features.flatMap(({ derived }) => derived?.() ?? []))
}

/** Returns what is damaged of the data that features derive from the store. */
export function checkDerived(derived: readonly DerivedData[], dataDir: string): readonly Damaged[] {
  return derived.flatMap(({ what, check, makeAgain }) =>
    check(dataDir).map(({ kind, fault }) => ({
      name: `${what} (${kind})`,
      kind,
      fault,
      makeAgain: (settings) => makeAgain(settings, kind),
    })),
  )
}
