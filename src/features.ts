import type { Feature } from './daemon/feature.ts'
import { account } from './features/account/feature.ts'
import { backup } from './features/backup/feature.ts'
import { bundles } from './features/bundles/feature.ts'
import { changes } from './features/changes/feature.ts'
import { doctor } from './features/doctor/feature.ts'
import { edge } from './features/edge/feature.ts'
import { findings } from './features/findings/feature.ts'
import { fleet } from './features/fleet/feature.ts'
import { images } from './features/images/feature.ts'
import { lookup } from './features/lookup/feature.ts'
import { match } from './features/match/feature.ts'
import { pages } from './features/pages/feature.ts'
import { relay } from './features/relay/feature.ts'
import { scanners } from './features/scanners/feature.ts'

/**
 * Every feature, in the order in which the daemon starts them. A folder of `features/` and its row can be deleted together, after
 * the features that need it: what is left is a mirror without that feature.
 */
export const FEATURES: readonly Feature[] = [
  account,
  relay,
  scanners,
  lookup,
  match,
  findings,
  changes,
  bundles,
  images,
  fleet,
  edge,
  pages,
  doctor,
  backup,
]
