import type { Feature } from '../../daemon/feature.ts'
import { DOCTOR_VERBS } from './verbs.ts'

/** Looks for what is wrong with a mirror, and says what to do. */
export const doctor: Feature = {
  name: 'doctor',
  needs: ['account', 'bundles', 'fleet', 'scanners'],
  verbs: { run: DOCTOR_VERBS },
}
