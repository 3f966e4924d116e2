import type { Feature } from '../../daemon/feature.ts'
import { MATCH_VERBS } from './verbs.ts'

/** Judges the components of an SBOM. */
export const match: Feature = {
  name: 'match',
  needs: ['lookup', 'scanners'],
  verbs: { ask: MATCH_VERBS },
  async daemon() {
    const { matchRoute } = await import('./route.ts')
    return { answers: () => ({ plugins: [matchRoute] }) }
  },
}
