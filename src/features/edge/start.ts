import { EDGE_TAGS } from '../../server/http/edge-fields.ts'
import { createEdgePurges } from './purge.ts'
import { authoritiesOf } from '../../upstream/http/transport.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'

/** Purges shared caches whenever other snapshots or views are served, and once at the start. */
export function startEdge({ config, log, reads, now, offline, signals }: Parts): RunningPart {
  const { edge, fleet, upstream } = config
  const isOn = edge.maxAgeSeconds > 0 && edge.purge.length > 0
  if (!isOn) return {}
  if (offline) log.warn({}, 'edge.purge: offline, so shared caches keep answers for edge.maxAgeSeconds')
  const settings = offline ? { ...edge, purge: [] } : edge
  const againMs = fleet.maxLagSeconds * 1000
  const ca = offline ? undefined : authoritiesOf(upstream)
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
  signals.on('served', look)
  signals.on('views', () => purges.purge([EDGE_TAGS.views]))
  return { shown: { edge: purges.status }, close: () => purges.close() }
}
