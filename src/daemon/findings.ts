import type { RouteTools } from '../api/access/private-routes.ts'
import type { PrivateRoute } from '../api/access/route-table.ts'
import type { ServerOptions } from '../api/server.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'
import { createFindingsFeed } from '../findings/feed.ts'
import { createFindingsKeeper } from '../findings/keeper.ts'
import { createFindingsRoutes } from '../findings/route.ts'
import { whyNoTags } from '../store/findings/words.ts'
import type { PinnedReads } from '../store/reads.ts'

interface FindingsStartOptions {
  readonly config: Config
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly reads: Pick<PinnedReads, 'pinned' | 'servedPin'>
  /** Also called with the last served entry of the change log. */
  readonly onServed?: NonNullable<ServerOptions['onServed']>
  /** The tags were judged again. */
  readonly onJudged: () => void
}

/** The judgement of the mirrored tags while the daemon runs. */
export interface RunningFindings {
  /** For the server's options. */
  readonly shown: Required<Pick<ServerOptions, 'onServed'>> & Pick<ServerOptions, 'findings' | 'findingsLog'>
  readonly routes: (tools: RouteTools) => readonly PrivateRoute[]
  /** Other views are served. */
  look(): void
  /** Ends what is under way. */
  close(): Promise<void>
}

/** Judges the SBOMs of the mirrored tags whenever other snapshots or views are served. */
export function startFindings(options: FindingsStartOptions): RunningFindings {
  const { config, log, reads } = options
  const findingsLog = createFindingsFeed(config)
  const keeper = createFindingsKeeper({
    config,
    log,
    reads: reads.pinned,
    servedPin: reads.servedPin,
    onJudged() {
      findingsLog.judged()
      options.onJudged()
    },
  })
  return {
    shown: {
      onServed(upTo) {
        options.onServed?.(upTo)
        keeper.look()
      },
      findingsLog,
      ...(whyNoTags(config) === null && { findings: () => keeper.report() }),
    },
    routes: createFindingsRoutes(config, reads.pinned),
    look: () => keeper.look(),
    close: () => keeper.close(),
  }
}
