import type { DerivedData } from '../../daemon/feature.ts'
import { checkViews } from './views/check.ts'
import { derivedVendors } from './views/osv/ecosystems.ts'
import { VIEWS, performWaiting } from './views/task.ts'

/** The views for scanners, as data that is derived from the store. */
export const derivedViews: DerivedData = {
  what: VIEWS,
  check: checkViews,
  makeAgain: ({ data, views }, kind) =>
    performWaiting({
      dataDir: data.dir,
      kind: kind === 'vex' ? 'vex' : 'osv',
      vendors: derivedVendors(views),
      rebuild: true,
    }),
}
