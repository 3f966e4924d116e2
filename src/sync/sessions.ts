import type { ArtifactSink } from '../upstream/artifacts.ts'
import type { OnRetry } from '../upstream/http/retry.ts'
import type { Cost, Session } from '../upstream/http/session.ts'
import type { UpstreamSurface, Upstream } from '../upstream/surfaces.ts'

/** The sessions of one run with the surfaces of the service, opened on first use. */
export type Sessions = ReturnType<typeof openSessions>

/** Creates the sessions of a run; `signal` aborts their requests. */
export function openSessions(upstream: Upstream, signal: AbortSignal, onRetry?: OnRetry) {
  const sessions = new Map<UpstreamSurface, Session>()
  const documents = { requests: 0, bytes: 0, retries: 0 }
  return {
    has: (surface: UpstreamSurface): boolean => upstream.has(surface),
    /** Returns the session of a surface. Throws `config` for a surface that is not configured. */
    of(surface: UpstreamSurface): Session {
      const open = sessions.get(surface) ?? upstream.client(surface).open(signal, 'crawl', onRetry)
      sessions.set(surface, open)
      return open
    },
    /** Fetches a document behind a pre-signed URL. Throws `upstream_*`. */
    fetchDocument: (url: string, sink: ArtifactSink): Promise<void> =>
      upstream.fetchDocument(url, { signal, cost: documents, onRetry }, sink),
    /** Returns the cost of all sessions together. */
    cost(): Cost {
      const all = [documents, ...[...sessions.values()].map(({ cost }) => cost)]
      const sum = (pick: (cost: Cost) => number): number => all.reduce((total, cost) => total + pick(cost), 0)
      return {
        requests: sum(({ requests }) => requests),
        bytes: sum(({ bytes }) => bytes),
        retries: sum(({ retries }) => retries),
      }
    },
  }
}
