import type { Feature } from '../../daemon/feature.ts'
import { RELAY_VERBS } from './verbs.ts'

/** Passes events on to receivers. */
export const relay: Feature = {
  name: 'relay',
  verbs: { move: RELAY_VERBS },
  daemon: async () => ({ start: (await import('./start.ts')).startRelay }),
}
