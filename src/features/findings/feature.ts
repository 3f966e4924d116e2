import type { Feature } from '../../daemon/feature.ts'
import { FINDINGS_VERBS } from './verbs.ts'

/** Keeps the findings of the mirrored tags. */
export const findings: Feature = {
  name: 'findings',
  needs: ['lookup', 'match', 'scanners'],
  verbs: { ask: FINDINGS_VERBS },
  daemon: async () => ({ start: (await import('./start.ts')).startFindings }),
}
