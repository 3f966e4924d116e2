import type { Feature } from '../../daemon/feature.ts'
import { CHANGES_VERBS } from './verbs.ts'

/** Says what changed in the records, since when. */
export const changes: Feature = {
  name: 'changes',
  needs: ['lookup', 'match', 'scanners'],
  verbs: { ask: CHANGES_VERBS },
}
