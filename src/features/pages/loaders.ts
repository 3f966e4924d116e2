import type { LoadPage, PagePath } from './page.ts'
import { loadChangesFeed } from './pages/changes/feeds.ts'
import { loadChangeList } from './pages/changes/page.ts'
import { loadEcosystemList, loadPackage, loadPackageList } from './pages/ecosystems.ts'
import { loadImageList, loadTagList } from './pages/images/lists.ts'
import { loadAvr, loadTag } from './pages/images/tag.ts'
import { loadOverview } from './pages/overview.ts'
import { loadPatches } from './pages/patches.ts'
import { loadRecord } from './pages/record.ts'
import { loadRuns } from './pages/runs/list.ts'
import { loadRun } from './pages/runs/run.ts'
import { loadSearch } from './pages/search.ts'
import { loadSignIn } from './pages/sign-in.ts'
import { loadTagsFeed } from './pages/tags/feeds.ts'
import { loadTagChanges } from './pages/tags/page.ts'
import { loadBundles } from './pages/transfer/bundles.ts'
import { loadDeliveries } from './pages/transfer/deliveries.ts'
import { loadRelay } from './pages/transfer/relay.ts'

/** What loads each page. For the thread that makes pages: the serving thread loads none of their modules. */
export const LOADERS: Readonly<Record<PagePath, LoadPage>> = {
  '': loadOverview,
  changes: loadChangeList,
  'changes.atom': loadChangesFeed,
  runs: loadRuns,
  run: loadRun,
  search: loadSearch,
  record: loadRecord,
  ecosystems: loadEcosystemList,
  packages: loadPackageList,
  package: loadPackage,
  patches: loadPatches,
  images: loadImageList,
  tags: loadTagList,
  tag: loadTag,
  avr: loadAvr,
  'tag-changes': loadTagChanges,
  'tag-changes.atom': loadTagsFeed,
  bundles: loadBundles,
  relay: loadRelay,
  webhooks: loadDeliveries,
  'sign-in': loadSignIn,
}
