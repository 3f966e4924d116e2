import { type NegotiatedAnswer, jsonAnswer } from '../http/negotiate.ts'
import { type Deliveries, createAnnouncing } from './events/announcer.ts'
import { createArtifactHost, createPresigner } from './presign.ts'
import type { Caller, ServiceError } from './request.ts'
import { type Audiences, createCredentials } from './credentials.ts'
import { type DeliveryAttempt, createDeliverer } from './events/deliveries.ts'
import { type OwnerKind, createDocuments } from './data/documents.ts'
import type { Origin } from './data/collection.ts'
import { type ServiceEdits, createServiceEdits } from './data/edits.ts'
import type { Tag } from './data/images.ts'
import { type Surface, createRequestLimiter, createSurface } from './surface.ts'
import { TIERS } from './options.ts'
import type { ServiceOptions } from './options.ts'
import type { Parts } from './parts.ts'
import { fileRoute } from './routes/artifacts.ts'
import { accountRoutes, TOKEN_PATH, identityRoutes } from './routes/account.ts'
import { imageRoutes } from './routes/images.ts'
import { catalogRoutes, packageRoutes } from './routes/packages.ts'
import { patchRoutes } from './routes/patches.ts'
import { subscriptionRoutes } from './routes/subscriptions.ts'
import { EVENT_TYPE, webhookRoutes } from './routes/webhooks.ts'
import type { ArtifactKind } from './shapes/artifact.ts'
import { wordedError } from './shapes/error.ts'
import { type Shape, shapeOf } from './shapes/shape.ts'
import { type SigningFault, statedIn, signedDocument } from './data/signed.ts'
import { createState } from './data/state.ts'

/** The service beside its public feeds, for a test to look at and to change. */
export interface Service extends ServiceEdits {
  /** Ends an API key or a token at once, by its secret; false when it is not known. */
  revoke(secret: string): boolean
  /** The exact bytes of an owner's documents of one kind; empty when it has none. */
  documents(kind: OwnerKind, id: string, artifact: ArtifactKind): Buffer[]
  /** Gives an owner's documents of one kind another content, under new addresses. */
  writeArtifact(kind: OwnerKind, id: string, artifact: ArtifactKind, content: string): void
  /**
   * Gives an owner's documents of one kind, JSON, as a statement about the image that is signed with the key of the provenances;
   * with a fault if one is given. Provenances are signed statements already, about images that nothing lists.
   */
  sign(id: string, artifact: 'sbom' | 'vex' | 'provenance', fault?: SigningFault | null): void
  /** The public key that provenances are signed with, PEM. */
  publicKey(): Buffer
  /**
   * Sends the event of a tag to every endpoint that subscribes to it, once each. A new tag's is sent without that.
   * More tags go into the same body where the shape's envelope takes several.
   */
  announce(tagId: string, ...more: string[]): Promise<DeliveryAttempt[]>
  /** What is delivered by itself: the event of each new remediated tag (service API, section 6). */
  deliveries: Deliveries
}

/** Base URLs, filled in once the servers listen. No slash at the end. */
export interface Addresses {
  url: string
  catalogUrl: string
  artifactUrl: string
  /** The identity surface's base with its version (service API, {identity_api_url}). */
  identityUrl: string
  authUrl: string
}

/** A service and the surfaces that speak for it, each for an address of its own. */
export interface ServiceParts {
  service: Service
  addresses: Addresses
  surfaces: Record<'api' | 'catalog' | 'artifacts' | 'identity', Surface>
  /** Breaks off what is being delivered. */
  stop(): Promise<void>
}

/**
 * Everything of the service but its feeds, generated from the seed; set its addresses before the first request. `records`: as
 * in `Origin`.
 */
export function createService(
  options: ServiceOptions,
  { seed, records, now: right }: Pick<Origin, 'seed' | 'records'> & { now: () => number },
): ServiceParts {
  const addresses = { url: '', catalogUrl: '', artifactUrl: '', identityUrl: '', authUrl: '' }
  const shape = shapeOf(options.shape ?? 'wire')
  const now = (): number => right() + shape.http.clockSeconds * 1000
  const state = createState({ seed, records, ids: shape.records.ids }, options, now)
  const credentials = createCredentials(options, state.apiKeys, () => audiencesOf(addresses), now)
  const { urlSeconds = 900, largeBytes = 20_000_000 } = options
  const presigner = createPresigner({ seed, seconds: urlSeconds, now }, () => addresses.artifactUrl)
  const deliverer = createDeliverer(options, right)
  const { counts, origin, artifacts: owned } = state
  const size = { largeSboms: counts.largeSboms, largeBytes, form: shape.artifacts }
  const documents = createDocuments({ ...origin, ...size, sbomOf: (vex) => owned.sbomOf(vex) })
  const parts: Parts = {
    state,
    credentials,
    presigner,
    documents,
    deliverer,
    options,
    shape,
    now,
    pending: new Map(),
    addresses,
  }
  const read = (kind: ArtifactKind | 'key', number: number): Buffer =>
    Buffer.concat(documents.read({ kind, number }).chunks())
  const announcing = createAnnouncing(options, state, deliverer)
  const edits = createServiceEdits(state)
  const service: Service = {
    ...edits,
    addTag: (imageId) => announcing.announce(edits.addTag(imageId)),
    deliveries: announcing.deliveries,
    ...createArtifactWrites({ state, documents, edits, seed }),
    revoke: (secret) => credentials.revoke(secret),
    documents: (kind, id, artifact) =>
      (state.artifacts.of(kind, id)[artifact] ?? []).map((number) => read(artifact, number)),
    publicKey: () => read('key', 0),
    async announce(tagId, ...more) {
      const tagOf = (id: string): Tag => {
        const tag = state.tags.get(id)?.listed
        if (tag === undefined) throw new Error(`the sandbox has no tag ${id}`)
        return tag
      }
      const tags = [tagOf(tagId), ...more.map(tagOf)] as const
      const type = options.eventType ?? EVENT_TYPE
      const due = state.webhooks.all().filter(({ listed }) => listed.event_types.includes(type))
      return Promise.all(due.map(({ listed }) => deliverer.deliver(listed, tags, type)))
    },
  }
  const artifacts = createArtifactHost(presigner, documents)
  const surfaces = { ...surfacesOf(parts), artifacts }
  return { service, addresses, surfaces, stop: () => announcing.stop() }
}

interface WritingParts extends Pick<Parts, 'state' | 'documents'> {
  readonly edits: ServiceEdits
  readonly seed: number
}

/** Creates what gives artifacts another content. */
function createArtifactWrites(parts: WritingParts): Pick<Service, 'writeArtifact' | 'sign'> {
  const { state, documents, edits, seed } = parts
  const writeArtifact: Service['writeArtifact'] = (kind, id, artifact, content) => {
    const digest = state.tags.get(id)?.listed.digest
    edits.rotateArtifact(kind, id, artifact)
    if (kind === 'tag') edits.change('tags', id, { digest })
    for (const number of state.artifacts.of(kind, id)[artifact] ?? [])
      documents.write({ kind: artifact, number }, content)
  }
  return {
    writeArtifact,
    sign(id, artifact, fault = null) {
      const [number = 0] = state.artifacts.of('tag', id)[artifact] ?? []
      const document = Buffer.concat(documents.read({ kind: artifact, number }).chunks())
      const digest = state.tags.get(id)?.listed.digest ?? ''
      const signed = signedDocument({ ...statedIn(artifact, document), seed, digest, fault })
      writeArtifact('tag', id, artifact, signed.toString())
    },
  }
}

const ANYONE: Caller = { role: 'readonly', identity: false, remediation: false }

function surfacesOf(parts: Parts): Record<'api' | 'catalog' | 'identity', Surface> {
  const { credentials, options, shape, now } = parts
  const { rateLimit, tier, catalogNeedsCredential = false } = options
  const limiter = createRequestLimiter(rateLimit, now)
  const { http } = shape
  const api = createSurface({
    host: 'api',
    owns: (path) => /^\/v[13]\//.test(path),
    routes: [
      ...accountRoutes(parts),
      ...subscriptionRoutes(parts),
      ...patchRoutes(parts),
      ...imageRoutes(parts),
      ...packageRoutes(parts),
      ...webhookRoutes(parts),
      fileRoute(parts),
    ],
    admit: (headers) => credentials.remediation(headers),
    limiter: () => limiter(),
    wordError: (error) => messageOf(shape, error),
    http,
  })
  const catalog = createSurface({
    host: 'catalog',
    owns: () => true,
    routes: [...catalogRoutes(parts), fileRoute(parts)],
    admit: (headers) => (catalogNeedsCredential ? credentials.remediation(headers) : ANYONE),
    limiter: () => ({}),
    wordError: (error) => messageOf(shape, error),
    http,
  })
  const perMinute = tier && { requests: TIERS[tier], windowSeconds: 60 }
  const identityLimiter = createRequestLimiter(perMinute, now)
  const identity = createSurface({
    host: 'identity',
    owns: () => true,
    routes: identityRoutes(parts),
    admit: (headers, path) => (path === TOKEN_PATH ? ANYONE : credentials.identity(headers)),
    limiter: (path) => (path === TOKEN_PATH ? {} : identityLimiter()),
    wordError: identityError,
    http,
  })
  return { api, catalog, identity }
}

/** A token for the identity API opens that alone; one for the service's own address, the rest. */
function audiencesOf({ url, identityUrl, authUrl }: Addresses): Audiences {
  const isUnder = (address: string, root: string): boolean => address === root || address.startsWith(`${root}/`)
  return (audience) => {
    if (isUnder(audience, identityUrl) || isUnder(audience, authUrl)) {
      return { identity: true, remediation: false }
    }
    return isUnder(audience, url) ? { identity: false, remediation: true } : undefined
  }
}

function messageOf({ errors }: Shape, { status, message }: ServiceError): NegotiatedAnswer {
  return wordedError(errors, status, message)
}

const CODES: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'invalid_token',
  403: 'insufficient_scope',
  404: 'not_found',
  405: 'method_not_allowed',
  429: 'too_many_requests',
}

/** The identity surface's form (service API, section 7). */
function identityError({ status, message, code }: ServiceError): NegotiatedAnswer {
  const error = code ?? CODES[status] ?? 'server_error'
  return jsonAnswer(status, { error, error_description: message, status_code: status })
}
