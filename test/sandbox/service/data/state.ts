import { randomUUID } from 'node:crypto'
import { createPublicationClock } from '../../feed/clock.ts'
import { type Collection, type Kind, type Origin, createCollection, idFor } from './collection.ts'
import type { ApiKey } from '../credentials.ts'
import { type Image, type Tag, generateImages, generateTags } from './images.ts'
import { type Package, generatePackages } from './packages.ts'
import { type Avr, type Organization, type Subscription, type SubscribedItem, type User, generateApiKeys, generateAvr, generateUser, organizationOf, subscriptionTo } from './people.ts'
import { type Ticket, NEWEST, generateTickets } from './tickets.ts'
import { type ArtifactStore, avrArtifacts, createArtifactStore, packageArtifacts, tagArtifacts } from './documents.ts'
import type { Counts, ServiceOptions } from '../options.ts'
import type { Webhook } from '../events/deliveries.ts'

/** Everything that the service knows. */
export interface State {
  origin: Origin
  counts: Required<Counts>
  organization: Organization
  images: Collection<Image>
  tags: Collection<Tag>
  packages: Collection<Package>
  tickets: Collection<Ticket>
  avrs: Collection<Avr>
  users: Collection<User>
  subscriptions: Collection<Subscription>
  apiKeys: Collection<ApiKey>
  webhooks: Collection<Webhook>
  artifacts: ArtifactStore
  /** Unix milliseconds to stamp a change with: later than any stamp before, though that may be ahead of the clock. */
  stamp(): number
  /** An id that nothing of its kind has. */
  newId(kind: Kind): string
}

/** Integer ids from here on are of things that clients made. */
const FIRST_NEW = 500_000

const DEFAULTS: Required<Counts> = {
  images: 12,
  tags: 40,
  packages: 30,
  tickets: 300,
  avrs: 8,
  users: 5,
  subscriptions: 6,
  largeSboms: 0,
}

/** The state that a seed and the counts give; the same at any time. */
export function createState(origin: Origin, options: ServiceOptions, now: () => number): State {
  const counts = { ...DEFAULTS, ...options }
  const clock = createPublicationClock(now)
  let last = NEWEST
  let next = FIRST_NEW
  const many = <T>(count: number, make: (origin: Origin, i: number) => T): T[] =>
    Array.from({ length: count }, (_, i) => make(origin, i))
  const images = generateImages(origin, counts.images, counts.tags)
  const state: State = {
    origin,
    counts,
    organization: organizationOf(origin),
    images: createCollection('image', images, NEWEST),
    tags: createCollection('tag', generateTags(origin, counts), NEWEST),
    packages: createCollection('package', generatePackages(origin, counts.packages), NEWEST),
    tickets: createCollection('ticket', generateTickets(origin, counts.tickets), NEWEST),
    avrs: createCollection('avr', many(counts.avrs, generateAvr), NEWEST),
    users: createCollection('user', many(counts.users, generateUser), NEWEST),
    subscriptions: createCollection<Subscription>('subscription', [], NEWEST),
    apiKeys: createCollection('api_key', generateApiKeys(options), NEWEST),
    webhooks: createCollection<Webhook>('webhook', [], NEWEST),
    artifacts: createArtifactStore(),
    newId(kind) {
      if (origin.ids === 'uuid' || origin.ids === 'mixed') return randomUUID()
      return idFor(origin, kind, next++)
    },
    stamp: () => (last = Math.max(clock.advance(), last + 1000)),
  }
  attachDocuments(state)
  subscribe(state)
  return state
}

function attachDocuments({ tags, packages, avrs, artifacts }: State): void {
  for (const { id, seq, listed } of tags.all()) {
    artifacts.put('tag', id, tagArtifacts(seq, listed.remediated))
  }
  for (const { id, seq } of packages.all()) artifacts.put('package', id, packageArtifacts(seq))
  for (const { id, seq } of avrs.all()) artifacts.put('avr', id, avrArtifacts(seq))
}

/** Subscriptions to tags and packages alternately, the first ones of each. */
function subscribe({ origin, counts, organization, tags, packages, subscriptions }: State): void {
  const allTags = tags.all()
const allPackages = packages.all()
  for (let i = 0; i < counts.subscriptions; i++) {
    const tag = allTags[i >> 1]
    const found = allPackages[i >> 1]
    const preferred: SubscribedItem | undefined =
      i % 2 === 0 ? tag && { tag } : found && { package: found }
    if (preferred === undefined) continue
    const id = idFor(origin, 'subscription', i)
    subscriptions.put(subscriptionTo(preferred, id, organization.id, NEWEST))
  }
}
