import type { Feature } from '../../daemon/feature.ts'
import { BUNDLE_VERBS, STATUS_PART } from './verbs.ts'

/** Carries the mirrored data across air gaps, in signed files. */
export const bundles: Feature = {
  name: 'bundles',
  verbs: { run: [STATUS_PART], move: BUNDLE_VERBS },
  formats: async () => ({ bundleFormat: (await import('./format/manifest.ts')).FORMAT }),
  commands: async () => ({ statusLines: (await import('./cli/arrivals.ts')).describeArrivals }),
  daemon: async () => ({ start: (await import('./start.ts')).startBundles }),
}
