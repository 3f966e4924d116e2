import type { DerivedData } from '../../daemon/feature.ts'
import { checkViews } from './views/check.ts'
import { derivedVendors } from './views/osv/ecosystems.ts'
import { performTask } from './views/task.ts'

/** The views for scanners, as data that is derived from the store. */
export const derivedViews: DerivedData = {
  what: 'views for scanners',
  check: checkViews,
  makeAgain: ({ data, views }, kind) =>
    performTask({
      dataDir: data.dir,
      kind: kind === 'vex' ? 'vex' : 'osv',
      vendors: derivedVendors(views),
      rebuild: true,
    }),
}
