import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import type { Authorization } from './http/credentials.ts'
import type { ClockWatch } from './clock-check.ts'
import type { Wire } from './http/request.ts'
import type { HostLimiter } from './http/limiter.ts'
import type { Priority } from './http/quota.ts'
import type { Delay } from './http/retry.ts'
import { type SecretSearch, createSecretSearch } from './secret-search.ts'
import { type Session, createSession } from './http/session.ts'
import type { Transport } from './http/transport.ts'

/** The way to one surface of the service. */
export interface Client {
  /** A session for one run. `ops` is for a person who waits: it may use the reserve of the rate limit. */
  open(signal: AbortSignal, priority?: Priority): Session
}

/** What a client is made from. Surfaces share one transport, and one limiter for each host. */
export interface ClientDeps {
  config: Config['upstream']
  transport: Transport
  /** URL that every path is added to, without a slash at its end. */
  root: string
  /** Null: no credential is sent. */
  authorization: Authorization | null
  /** Null: nothing is slowed. */
  limiter: HostLimiter | null
  version: string
  now: () => number
  clock?: ClockWatch
  /** How messages call the surface, and the setting that names its root. */
  title?: string
  setting?: string
  /** Takes secrets out of messages where a request's body holds them; a credential brings its own. */
  scrub?: (text: string) => string
  /** Finds the credentials of all surfaces; not given: answers are not searched. */
  secrets?: SecretSearch
  delay?: Delay
}

/** What requests call themselves. */
export function agentName({ userAgent }: Config['upstream'], version: string): string {
  return `patchmirror/${version}${userAgent === null ? '' : ` (${userAgent})`}`
}

/** Waits in real time, until the signal ends it. */
export const realDelay: Delay = (ms, signal) => sleep(ms, undefined, { signal })

/** A client of one surface: user agent, deadline, size cap, rate limit, credential and retry rule of every request. */
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
    open(signal, priority = 'crawl') {
      const cost = { requests: 0, bytes: 0, retries: 0 }
      return createSession(wire, root, { signal, priority, cost, refused: null })
    },
  }
}
