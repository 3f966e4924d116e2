import { createHash } from 'node:crypto'
import { seconds } from '../../feed/generate.ts'
import { ServiceError } from '../request.ts'
import type { Collection, Entry } from './collection.ts'
import { imageOfTag, generateTag } from './images.ts'
import { generatePackage } from './packages.ts'
import { type SubscribedItem, subscriptionTo } from './people.ts'
import { generateTicket } from './tickets.ts'
import { type OwnerKind, packageArtifacts, tagArtifacts } from './documents.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'
import type { State } from './state.ts'

/** The kinds of things that commands can change. */
type Things =
  'images' | 'tags' | 'packages' | 'tickets' | 'users' | 'subscriptions' | 'apiKeys' | 'webhooks'

/** Commands that let the service live. Each moves `updated_at` of what it touches; unknown ids throw. */
export interface ServiceEdits {
  /** The ids of all things of a kind, in the order of their list. */
  ids(kind: Things | 'avrs'): string[]
  /** A thing as its own page shows it, without numbers too large for JavaScript made whole. */
  read(kind: Things | 'avrs', id: string): Record<string, unknown>
  /** Sets fields, for example `change('tickets', id, { ticket_status: 'done' })`. */
  change(kind: Things, id: string, fields?: Record<string, unknown>): void
  remove(kind: Things, id: string): void
  /** A new tag of an image, that of its id or the next one; its own documents. Returns the tag's id. */
  addTag(imageId?: string): string
  addPackage(): string
  addTicket(): string
  /** Subscribes to a tag, a package or an image; returns the subscription's id. */
  addSubscription(to: { tag: string } | { package: string } | { image: string }): string
  /**
   * New content for one artifact; `silent` leaves the owner as it was. A tag with a new SBOM was built again: its digest is another
   * one.
   */
  rotateArtifact(
    kind: OwnerKind,
    id: string,
    artifact: ArtifactKind,
    options?: { silent?: boolean },
  ): void
}

/** The commands over a state. */
export function createServiceEdits(state: State): ServiceEdits {
  const stamp = (after = 0): number => Math.max(state.stamp(), after + 1000)
  /** Any kind's collection, for what is the same for all of them. */
  const of = (kind: Things | 'avrs'): Collection => state[kind]
  return {
    ids: (kind) => state[kind].all().map(({ id }) => id),
    read: (kind, id) => {
      const { listed, detail } = known(of(kind), id)
      return JSON.parse(JSON.stringify({ ...listed, ...detail })) as Record<string, unknown>
    },
    change: (kind, id, fields = {}) => change(of(kind), id, fields, stamp),
    remove(kind, id) {
      known(of(kind), id)
      state[kind].remove(id)
    },
    addTag: (imageId) => addTag(state, imageId, stamp()),
    addPackage() {
      const i = fresh(state, 'packages')
      const id = put(state.packages, generatePackage(state.origin, i), stamp())
      state.artifacts.put('package', id, packageArtifacts(i))
      return id
    },
    addTicket: () => {
      return put(state.tickets, generateTicket(state.origin, fresh(state, 'tickets')), stamp())
    },
    addSubscription(to) {
      const target = targetOf(state, to)
      const made = subscriptionTo(
        target,
        state.newId('subscription'),
        state.organization.id,
        stamp(),
      )
      return state.subscriptions.put(made).id
    },
    rotateArtifact(kind, id, artifact, { silent = false } = {}) {
      known(of(`${kind}s`), id)
      state.artifacts.rotate(kind, id, artifact)
      if (silent) return
      const isRebuilt = kind === 'tag' && artifact === 'sbom'
      change(of(`${kind}s`), id, isRebuilt ? { digest: rebuiltDigest(state, id) } : {}, stamp)
    },
  }
}

/** Another digest of a tag, the same in each run of a test. */
function rebuiltDigest(state: State, id: string): string {
  const before = state.tags.get(id)?.listed.digest ?? ''
  return `sha256:${createHash('sha256').update(before).digest('hex')}`
}

function known<F extends object>(collection: Collection<F>, id: string): Entry<F> {
  const entry = collection.get(id)
  if (entry === undefined) throw new ServiceError(404, `the sandbox has no ${JSON.stringify(id)}`)
  return entry
}

function change(
  collection: Collection,
  id: string,
  fields: Record<string, unknown>,
  stamp: (after: number) => number,
): void {
  const entry = known(collection, id)
  const lastModified = stamp(entry.lastModified)
  const listed = { ...entry.listed, ...fields, updated_at: seconds(lastModified) }
  collection.put({ ...entry, lastModified, listed })
}

/** Adds something generated, as created now. */
function put<F extends object>(collection: Collection<F>, made: Entry<F>, time: number): string {
  const at = seconds(time)
  const listed = { ...made.listed, created_at: at, updated_at: at }
  return collection.put({ ...made, lastModified: time, listed }).id
}

/** A number of which nothing was generated yet: one more than there were ever, counted by what is there. */
function fresh(state: State, kind: 'tags' | 'packages' | 'tickets'): number {
  return state.counts[kind]++
}

/** Adds a tag; the image's count changes with it, so the image list shows where to look. */
function addTag(state: State, imageId: string | undefined, time: number): string {
  const images = state.counts.images
  if (images === 0) throw new Error('the sandbox has no images to add a tag to')
  let i = fresh(state, 'tags')
  const wanted = imageId === undefined ? undefined : known(state.images, imageId).seq
  while (wanted !== undefined && imageOfTag(i, images) !== wanted) i = fresh(state, 'tags')
  const id = put(state.tags, generateTag(state.origin, i, { ...state.counts, avrs: 0 }), time)
  const tag = known(state.tags, id)
  state.artifacts.put('tag', id, tagArtifacts(i, tag.listed.remediated))
  const image = known(state.images, String(tag.listed.image.id))
  change(state.images, image.id, { tags_count: image.listed.tags_count + 1 }, (after) =>
    Math.max(time, after + 1000),
  )
  return id
}

function targetOf(
  state: State,
  to: { tag: string } | { package: string } | { image: string },
): SubscribedItem {
  if ('tag' in to) return { tag: known(state.tags, to.tag) }
  if ('package' in to) return { package: known(state.packages, to.package) }
  return { image: known(state.images, to.image) }
}
