import type { Feature } from '../../daemon/feature.ts'
import { SCANNER_VERBS } from './verbs.ts'

/** Makes what scanners read in their own layouts, and answers their queries. */
export const scanners: Feature = {
  name: 'scanners',
  verbs: { ask: SCANNER_VERBS },
  derived: async () => (await import('./derived.ts')).derivedViews,
  daemon: async () => ({ start: (await import('./start.ts')).startViews }),
}
