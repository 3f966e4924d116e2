import { answers } from './answers/answers.ts'
import { bundles } from './bundles/bundles.ts'
import { patches } from './catalog/patches.ts'
import { catalog } from './catalog/sync.ts'
import { fleet } from './fleet/fleet.ts'
import { idle } from './idle/idle.ts'
import { pages } from './pages/pages.ts'
import { records } from './records/group.ts'
import type { Group } from './report/group.ts'
import { scale } from './scale/scale.ts'
import { serving } from './serving/serving.ts'
import { views } from './views/views.ts'
import { webhooks } from './webhooks/group.ts'

/** Every group, in the order of the page. */
export const GROUPS: readonly Group[] = [
  records,
  serving,
  catalog,
  patches,
  webhooks,
  bundles,
  views,
  pages,
  answers,
  idle,
  fleet,
  scale,
]
