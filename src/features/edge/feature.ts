import type { Feature } from '../../daemon/feature.ts'

/** Purges shared caches in front of the mirror. */
export const edge: Feature = {
  name: 'edge',
  daemon: async () => ({ start: (await import('./start.ts')).startEdge }),
}
