import { type ValueOf, choice, number } from '../kinds/base.ts'
import { oneOrMap, valueFor } from '../kinds/maps.ts'

/** The sources that have an age, as settings name them. */
export const AGED = ['feeds', 'osv', 'catalog', 'identity'] as const

/** How old the data of a source may be, hours. */
export const maxAge = () => oneOrMap(AGED, number({ min: 0.01, max: 87_600, example: 26 }), '{ osv: 26, catalog: 50 }')

/** What requests get of data that is older. */
export const staleAction = () => oneOrMap(AGED, choice(['serve', 'warn', 'refuse'], 'refuse'), '{ osv: refuse }')

/** Returns how old a source may be, and what requests get when it is older. An edited default.yaml may lack a source. */
export function ageLimits(
  hours: ValueOf<ReturnType<typeof maxAge>>,
  action: ValueOf<ReturnType<typeof staleAction>>,
  source: (typeof AGED)[number],
) {
  return {
    maxAgeHours: valueFor(hours, source) ?? 26,
    staleAction: valueFor(action, source) ?? 'serve',
  }
}
