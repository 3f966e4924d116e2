import type { Feature } from '../../daemon/feature.ts'
import { BACKUP_VERBS } from './verbs.ts'

/** Copies and restores the data folder. */
export const backup: Feature = {
  name: 'backup',
  needs: ['bundles'],
  verbs: { keep: BACKUP_VERBS },
}
