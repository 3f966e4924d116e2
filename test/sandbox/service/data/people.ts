import { seconds } from '../../feed/generate.ts'
import { type ApiKey, givenKeys } from '../credentials.ts'
import { type Entry, type Origin, idFor, randomFor } from './collection.ts'
import type { Image, Tag } from './images.ts'
import type { Package } from './packages.ts'
import { NEWEST } from './tickets.ts'
import type { ServiceOptions } from '../options.ts'

/** The caller's organization, without its accounts. */
export interface Organization {
  id: string
  name: string
  kind: 'public' | 'private'
}

/** A user of the identity surface; the id is not one that a path segment takes as it is. */
export interface User {
  user_id: string
  email: string
  name: string
  created_at: string
  updated_at: string
}

/** A subscription to a tag or a package (wire facts, records). */
export interface Subscription {
  id: string
  organization_id: string
  service_registry_tag_id?: string
  tag?: Pick<Tag, 'id' | 'name' | 'image'>
  package_id?: string
  package?: Pick<Package, 'id' | 'name' | 'ecosystem'>
  image_id?: Image['id']
  image?: Pick<Image, 'id' | 'repository'>
  created_at: string
  updated_at: string
}

/** A remediated artifact: no list shows it, tags name it and its documents hang on it. */
export interface Avr {
  id: string
  status: string
}

const DAY = 86_400_000
const NAMES = ['Zoë Ångström', 'José Núñez', '山田 太郎', 'Mary O’Hara', 'Ann Lee', 'Иван Петров']

/** The organization of a seed. */
export function organizationOf(origin: Origin): Organization {
  const id = idFor(origin, 'organization', 0)
  return { id, name: 'Beispiel & Söhne GmbH', kind: 'private' }
}

/** The i-th user of a seed. */
export function generateUser(origin: Origin, i: number): Entry<User> {
  const random = randomFor(origin.seed, 'user', i)
  const updated = NEWEST - random.int(200) * DAY
  const id = idFor(origin, 'user', i)
  const listed: User = {
    user_id: id.length < 36 ? id : `auth0|${id.replaceAll('-', '').slice(0, 24)}`,
    email: `user${i + 1}@example.com`,
    name: NAMES[i % NAMES.length] ?? '',
    created_at: seconds(updated - 100 * DAY),
    updated_at: seconds(updated),
  }
  return { id: listed.user_id, seq: i, lastModified: updated, listed, detail: {} }
}

/** The i-th AVR of a seed. */
export function generateAvr(origin: Origin, i: number): Entry<Avr> {
  const listed: Avr = { id: idFor(origin, 'avr', i), status: 'done' }
  return { id: listed.id, seq: i, lastModified: NEWEST, listed, detail: {} }
}

/** The entries of the API keys that a sandbox starts with. */
export function generateApiKeys(options: ServiceOptions): Entry<ApiKey>[] {
  return givenKeys(options).map(({ id, name, role }, seq) => {
    const at = seconds(NEWEST)
    const created = { type: 'user', active: true, created_at: at, expires_at: null }
    const listed = { id, name, role, ...created, last_used_at: null }
    return { id, seq, lastModified: NEWEST, listed, detail: {} }
  })
}

/** What a subscription is to. */
export type SubscribedItem =
  { tag: Entry<Tag> } | { package: Entry<Package> } | { image: Entry<Image> }

/** A subscription made at a time, unix milliseconds. */
export function subscriptionTo(
  target: SubscribedItem,
  id: string,
  organization: string,
  time: number,
): Omit<Entry<Subscription>, 'seq'> {
  const at = seconds(time)
  const about = aboutOf(target)
  const listed = { id, organization_id: organization, ...about, created_at: at, updated_at: at }
  return { id, lastModified: time, listed, detail: {} }
}

function aboutOf(target: SubscribedItem): Partial<Subscription> {
  if ('tag' in target) {
    const { id, name, image } = target.tag.listed
    return { service_registry_tag_id: id, tag: { id, name, image } }
  }
  if ('package' in target) {
    const { id, name, ecosystem } = target.package.listed
    return { package_id: id, package: { id, name, ecosystem } }
  }
  const { id, repository } = target.image.listed
  return { image_id: id, image: { id, repository } }
}
