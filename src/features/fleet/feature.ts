import type { Feature } from '../../daemon/feature.ts'
import { FLEET_VERBS } from './verbs.ts'

/** Shares the data of several mirrors through an object store. */
export const fleet: Feature = {
  name: 'fleet',
  needs: ['bundles'],
  verbs: { move: FLEET_VERBS },
  commands: async () => {
    const { refuseUnpublished, refuseUnfilled } = await import('./cli/paused.ts')
    return { refuseRun: refuseUnpublished, refuseRepair: refuseUnfilled }
  },
  daemon: async () => ({ gate: (await import('./join.ts')).joinFleet }),
}
