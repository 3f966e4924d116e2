import type { Dialect } from './events/dialect.ts'
import type { Role } from './request.ts'
import type { Shape, ShapeName } from './shapes/shape.ts'

/** How many requests a surface takes per window. */
export interface RateLimit {
  requests: number
  windowSeconds: number
}

/** The identity surface's tiers, requests a minute (service API, section 8). */
export const TIERS = { free: 100, standard: 1000, enterprise: 10_000 } as const

/** A secret that the sandbox knows, and what it is good for. */
interface Grant {
  /** Default: the service's `role`, itself `admin`. */
  role?: Role
  /** Whether the identity surface takes it; default true. */
  identity?: boolean
}

/** How much there is of everything; the defaults are small. */
export interface Counts {
  images?: number
  tags?: number
  packages?: number
  tickets?: number
  avrs?: number
  users?: number
  subscriptions?: number
  /** SBOMs of `largeBytes`, the first ones; default 0. */
  largeSboms?: number
}

/** The service beside its public feeds. Everything has a default; the credentials' are in `credentials.ts`. */
export interface ServiceOptions extends Counts {
  apiKeys?: readonly (Grant & { key: string; name?: string })[]
  tokens?: readonly (Grant & { token: string })[]
  clients?: readonly (Grant & { id: string; secret: string })[]
  /** The role of what names none; default `admin`. */
  role?: Role
  /** Lifetime of tokens from `/oauth/token`; default 3600. */
  tokenSeconds?: number
  /** Lifetime of pre-signed URLs; default 900. */
  urlSeconds?: number
  /** A named shape, or any other (`shaped`); the feeds, validators and the clock follow it too. Default `wire`. */
  shape?: ShapeName | Shape
  /** For the remediation surface and the settings; default none, and then no headers either. */
  rateLimit?: RateLimit
  /** The identity surface's limit; default none. */
  tier?: keyof typeof TIERS
  /** Bytes of a large SBOM; default 20,000,000. */
  largeBytes?: number
  /** Whether the package catalog asks for a credential; default false. */
  catalogNeedsCredential?: boolean
  /** How deliveries are signed (wire facts, webhook deliveries); default `standard`. */
  dialect?: Dialect
  /** The signing secret of every new webhook subscription; default a random one each. */
  webhookSecret?: string
  /** Pauses before the second attempt to deliver an event and the following ones; default up to 75 hours. */
  retryDelaysMs?: readonly number[]
  /** The event type that the service knows; default the contract's. */
  eventType?: string
  /** Ports of the addresses beside the sandbox's own; default free ones. */
  ports?: { catalog?: number; artifacts?: number; identity?: number }
  /** How long a delivery may take; default 5000. */
  deliveryTimeoutMs?: number
}
