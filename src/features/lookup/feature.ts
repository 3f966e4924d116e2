import type { Feature } from '../../daemon/feature.ts'
import { LOOKUP_VERBS } from './verbs.ts'

/** Finds records, packages, images and tags, and shows them in the terminal. */
export const lookup: Feature = {
  name: 'lookup',
  needs: ['scanners'],
  verbs: { ask: LOOKUP_VERBS },
}
