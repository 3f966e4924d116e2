import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import type { Authorization } from './http/credentials.ts'
import type { ClockWatch } from './clock-check.ts'
import type { Wire } from './http/request.ts'
import type { HostLimiter } from './http/limiter.ts'
import type { Priority } from './http/quota.ts'
import type { Delay, OnRetry } from './http/retry.ts'
import { type SecretSearch, createSecretSearch } from './secret-search.ts'
import { type Session, createSession } from './http/session.ts'
import type { Transport } from './http/transport.ts'

/** A client of one surface of the service. */
export interface Client {
  /** Opens a session for one run. `ops` is for interactive commands: it may use the reserve of the rate limit. */
  open(signal: AbortSignal, priority?: Priority, onRetry?: OnRetry): Session
}

/** Dependencies of a client. Surfaces share one transport, and one limiter per host. */
export interface ClientDeps {
  config: Config['upstream']
  transport: Transport
  /** URL that paths are appended to, without a slash at its end. */
  root: string
  /** Null: no credential is sent. */
  authorization: Authorization | null
  /** Null: no rate limit. */
  limiter: HostLimiter | null
  version: string
  now: () => number
  clock?: ClockWatch
  /** Name of the surface in messages, and the setting of its root. */
  title?: string
  setting?: string
  /** Removes secrets of request bodies from messages; a credential removes its own. */
  scrub?: (text: string) => string
  /** Finds the credentials of all surfaces; without it responses are not searched. */
  secrets?: SecretSearch
  delay?: Delay
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
