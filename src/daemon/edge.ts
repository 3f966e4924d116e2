import { EDGE_TAGS } from '../api/edge/headers.ts'
import { type EdgePurges, createEdgePurges } from '../api/edge/purge.ts'
import type { ServerOptions } from '../api/server.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'
import type { PinnedReads } from '../store/reads.ts'
import { authoritiesOf } from '../upstream/http/transport.ts'

/** What the purges of shared caches are wired from. */
interface EdgeStartOptions {
  readonly config: Config
  readonly log: Logger
  readonly now?: () => number
  readonly offline?: boolean
  readonly reads: Pick<PinnedReads, 'pinned'>
  /** Also called with the last served entry of the change log. */
  readonly onServed?: NonNullable<ServerOptions['onServed']>
}

/** The purges of shared caches while the daemon runs. */
export interface RunningEdge extends Pick<EdgePurges, 'close'> {
  /** For the server's options. */
  readonly shown: Required<Pick<ServerOptions, 'onServed'>> & Pick<ServerOptions, 'edge'>
  /** Another generation of views is served. */
  onViews(): void
}

/** Purges shared caches whenever other snapshots or views are served, and once at the start. */
export function startEdge(options: EdgeStartOptions): RunningEdge {
  const { config, log, reads, now = Date.now, offline = false } = options
  const { edge, fleet, upstream } = config
  const isOn = edge.maxAgeSeconds > 0 && edge.purge.length > 0
  if (isOn && offline) log.warn({}, 'edge.purge: offline, so shared caches keep answers for edge.maxAgeSeconds')
  const settings = isOn && !offline ? edge : { ...edge, purge: [] }
  const againMs = fleet.maxLagSeconds * 1000
  const ca = settings.purge.length === 0 ? undefined : authoritiesOf(upstream)
  const purges = createEdgePurges({ config: settings, ca, againMs, log, now })
  const seen: Partial<Record<'osv' | 'feeds', string | null>> = {}
  const look = (): void => {
    const changed = (['osv', 'feeds'] as const).filter((source) => {
      const id = reads.pinned.snapshots.readSnapshot(source)?.id ?? null
      const isNew = seen[source] !== id
      seen[source] = id
      return isNew
    })
    purges.purge(changed.map((source) => EDGE_TAGS[source]))
  }
  return {
    shown: {
      onServed(upTo) {
        options.onServed?.(upTo)
        if (settings.purge.length > 0) look()
      },
      ...(isOn && { edge: purges.status }),
    },
    onViews: () => purges.purge([EDGE_TAGS.views]),
    close: purges.close,
  }
}
