import { guardFigures } from './sections/guard.ts'
import type { Values } from './table.ts'

/** What the program reads beside the settings themselves, by section: forms that are written in one text or one map. */
export type Derived = Readonly<ReturnType<typeof derive>>

/** Derives what the program reads from checked values. */
export function derive(values: Values) {
  return { guard: guardFigures(values.guard) }
}
