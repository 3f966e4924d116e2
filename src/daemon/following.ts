import type { RouteTools } from '../api/access/private-routes.ts'
import type { MirrorServer } from '../api/server.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'
import type { PinnedReads } from '../store/reads.ts'
import type { SyncThread } from '../sync/thread.ts'
import { createArrivals } from './verification/arrivals.ts'
import { type RunningScrub, startScrub } from './verification/scrub.ts'
import { type RunningBundles, startBundles } from './bundles.ts'
import { type RunningEdge, startEdge } from './edge.ts'
import type { RunningRelay } from './relay.ts'
import { type RunningFindings, startFindings } from './findings.ts'
import { type RunningViews, startViews } from './views.ts'

interface FollowingOptions {
  readonly config: Config
  readonly version: string
  readonly log: Logger
  readonly now?: () => number
  readonly offline?: boolean
  readonly progressOf: Parameters<typeof startViews>[0]['progressOf']
}

/** What is started, as the daemon keeps it to close it. */
interface Following {
  readonly server?: MirrorServer
  views?: RunningViews
  findings?: RunningFindings
  bundles?: RunningBundles
  edge?: RunningEdge
  scrub?: RunningScrub
}

/** Starts what follows the served data: views, the findings of tags, bundles, caches. Returns what the server shows of them. */
export function startFollowing(
  options: FollowingOptions,
  on: Following,
  { reads, relay, thread }: { reads: PinnedReads; relay: RunningRelay; thread: SyncThread },
) {
  const onMade = (): void => {
    on.server?.snapshotChanged()
    on.findings?.look()
    on.edge?.onViews()
    thread.checkpoint() // a build reads one snapshot for long, and the log could not be copied beyond it
  }
  const views = (on.views = startViews({ ...options, ...relay.shown, reads, onMade }))
  const onJudged = (): void => relay.judged()
  const findings = (on.findings = startFindings({ ...options, reads, ...views.shown, onJudged }))
  const bundles = (on.bundles = startBundles({ ...options, ...findings.shown }))
  const edge = (on.edge = startEdge({ ...options, reads, ...bundles.shown }))
  const scrub = (on.scrub = startScrub({ ...options, reads, thread }))
  void thread.started.then(scrub.catchUp, () => undefined) // a thread that cannot start ends the daemon
  const verify = (): void => thread.rebuildArchive()
  const lookForArrivals = createArrivals({ config: options.config, reads, verify })
  const onServed = (upTo: number): void => {
    edge.shown.onServed(upTo)
    lookForArrivals()
    thread.checkpoint() // the reader has moved on, also after an import or a run of another process
  }
  const shown = { ...relay.shown, ...views.shown, ...findings.shown, ...bundles.shown, ...edge.shown, onServed }
  const routes = (tools: RouteTools) => [...views.routes(tools), ...findings.routes(tools)]
  return { routes, shown }
}
