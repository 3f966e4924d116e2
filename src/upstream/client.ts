import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import type { Wire } from './http/request.ts'
import type { Priority } from './http/quota.ts'
import type { Delay, OnRetry } from './http/retry.ts'
import { createSecretSearch } from './secret-search.ts'
import { type Session, createSession } from './http/session.ts'

/** A client of one surface of the service. */
export interface Client {
  /** Opens a session for one run. `ops` is for interactive commands: it may use the reserve of the rate limit. */
  open(signal: AbortSignal, priority?: Priority, onRetry?: OnRetry): Session
}

/** What a client does without: it is of the public feeds then, and no response is searched for credentials. */
type Optional = 'title' | 'setting' | 'scrub' | 'secrets' | 'clock' | 'delay'

/** Dependencies of a client. Surfaces share one transport, and one limiter per host. */
export interface ClientDeps extends Omit<Wire, Optional | 'userAgent'>, Partial<Pick<Wire, Optional>> {
  /** URL that paths are appended to, without a slash at its end. */
  root: string
  version: string
}

/** Returns the User-Agent of requests. */
export function agentName({ userAgent }: Config['upstream'], version: string): string {
  return `patchmirror/${version}${userAgent === null ? '' : ` (${userAgent})`}`
}

/** Waits in real time; the signal ends the wait. */
export const realDelay: Delay = (ms, signal) => sleep(ms, undefined, { signal })

/**
 * Creates a client of one surface, with the user agent, deadline, size cap, rate limit, credential and retry rule of
 * its requests.
 */
export function createClient(deps: ClientDeps): Client {
  const { config, version, root, authorization } = deps
  const wire: Wire = {
    ...deps,
    title: deps.title ?? 'public surface',
    setting: deps.setting ?? 'upstream.apiRoot',
    scrub: deps.scrub ?? authorization?.scrub ?? null,
    secrets: deps.secrets ?? createSecretSearch(() => []),
    delay: deps.delay ?? realDelay,
    clock: deps.clock ?? null,
    userAgent: agentName(config, version),
  }
  return {
    open(signal, priority = 'crawl', onRetry) {
      const cost = { requests: 0, bytes: 0, retries: 0 }
      return createSession(wire, root, { signal, priority, cost, refused: null, onRetry })
    },
  }
}
