import type { RouteTools } from '../api/access/private-routes.ts'
import type { PrivateRoute } from '../api/access/route-table.ts'
import type { ServerOptions } from '../api/server.ts'
import { createVexRoutes } from '../api/scanners/vex.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'
import { activeSources } from '../domain/sources.ts'
import type { PinnedReads } from '../store/reads.ts'
import { createViewsBuilder } from '../views/builder.ts'

/** What the making and serving of views is wired from. */
interface ViewsStartOptions {
  readonly config: Config
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly reads: Pick<PinnedReads, 'pinned' | 'servedPin'>
  /** Another generation can be served. */
  readonly onMade: () => void
  /** How far the run of a source is; null: none is under way. */
  readonly progressOf: NonNullable<ServerOptions['progressOf']>
  /** Also called with the last served entry of the change log. */
  readonly onServed?: NonNullable<ServerOptions['onServed']>
}

/** What scanners read: made beside the server, and what the server shows of it. */
export interface RunningViews {
  /** For the server's options. */
  readonly shown: Required<Pick<ServerOptions, 'viewsMaker' | 'onServed'>>
  /** The private routes: the VEX repository. */
  readonly routes: (tools: RouteTools) => readonly PrivateRoute[]
  /** Ends what is under way; before the server. */
  close(): Promise<void>
}

/** Makes views whenever more is served than they show. */
export function startViews(options: ViewsStartOptions): RunningViews {
  const { config, log, reads, onMade, progressOf } = options
  const expectsCatalog = activeSources(config).includes('catalog')
  const keeper = createViewsBuilder({
    config,
    log,
    reads: reads.pinned,
    servedPin: reads.servedPin,
    onMade,
    isRunning: (kind) => progressOf(kind === 'osv' ? 'osv' : 'catalog') !== null,
  })
  const onServed = (upTo: number): void => {
    options.onServed?.(upTo)
    keeper.look()
  }
  return {
    shown: { viewsMaker: keeper, onServed },
    routes: createVexRoutes({ config, expectsCatalog, maker: keeper }),
    close: () => keeper.close(),
  }
}
