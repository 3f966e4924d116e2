import type { Page } from './page.ts'
import { CHANGES_ATOM, CHANGES_JSON } from './pages/changes/feeds.ts'
import { CHANGE_LIST } from './pages/changes/page.ts'
import { ECOSYSTEM_LIST, PACKAGE, PACKAGE_LIST } from './pages/ecosystems.ts'
import { IMAGE_LIST, TAG_LIST } from './pages/images/lists.ts'
import { AVR, TAG } from './pages/images/tag.ts'
import { OVERVIEW } from './pages/overview.ts'
import { PATCHES } from './pages/patches.ts'
import { RECORD } from './pages/record.ts'
import { RUN } from './pages/runs/run.ts'
import { RUNS } from './pages/runs/list.ts'
import { SEARCH } from './pages/search.ts'
import { BUNDLES } from './pages/transfer/bundles.ts'
import { DELIVERIES } from './pages/transfer/deliveries.ts'
import { RELAY } from './pages/transfer/relay.ts'
import { TAG_CHANGES_ATOM, TAG_CHANGES_JSON } from './pages/tags/feeds.ts'
import { TAG_CHANGES } from './pages/tags/page.ts'
import { SIGN_IN } from './pages/sign-in.ts'

/** Every page, in the order of the navigation. */
export const PAGES: readonly Page[] = [
  OVERVIEW,
  CHANGE_LIST,
  CHANGES_ATOM,
  CHANGES_JSON,
  RUNS,
  RUN,
  SEARCH,
  RECORD,
  ECOSYSTEM_LIST,
  PACKAGE_LIST,
  PACKAGE,
  PATCHES,
  IMAGE_LIST,
  TAG_LIST,
  TAG,
  AVR,
  TAG_CHANGES,
  TAG_CHANGES_ATOM,
  TAG_CHANGES_JSON,
  BUNDLES,
  RELAY,
  DELIVERIES,
  SIGN_IN,
]
