import type { CatalogBench } from './mirror.ts'

/** A row of the contract's endpoint tables (service API, section 4). */
export interface Row {
  table: string
  method: 'GET' | 'POST' | 'DELETE'
  /** Whether its answers are pages. */
  isList: boolean
  /** As the contract writes it. */
  path: string
  /** Requests of this row; paths as both the service and the mirror know them. */
  requests: (known: Known) => string[]
}

/** Identifiers that the sandbox has and that are in the mirror's scope, and some unknown ones. */
export interface Known {
  tags: string[]
  images: string[]
  repos: string[]
  packages: string[]
  avrs: string[]
  apiKeys: string[]
  subscriptions: string[]
  releases: { ecosystem: string; name: string; version: string; arch: string }[]
  osv: string[]
}

const get = (table: string, path: string, requests: Row['requests'], isList = false): Row => ({
  table,
  method: 'GET',
  isList,
  path,
  requests,
})

const list = (table: string, path: string, requests: Row['requests']): Row => get(table, path, requests, true)

const enc = encodeURIComponent
const FEEDS = 'Public feeds'
const release = (known: Known, tail: (one: Known['releases'][number]) => string): string[] =>
  known.releases.map(
    (one) => `/packages/ecosystems/${enc(one.ecosystem)}/packages/${enc(one.name)}/versions${tail(one)}`,
  )

/** Every row of the contract that the mirror answers with what upstream answers. */
export const READING: readonly Row[] = [
  get('Account', '/me', () => ['/v1/me']),
  get('Account', '/orgs/', () => ['/v1/orgs/']),
  list('API keys', '/api_keys/', () => ['/v1/api_keys/', '/v1/api_keys/?limit=2']),
  get('API keys', '/api_keys/{apiKeyID}/', ({ apiKeys }) =>
    [...apiKeys, 'no-such-key'].map((id) => `/v1/api_keys/${enc(id)}/`),
  ),
  list('Subscriptions', '/subscriptions/', () => ['/v1/subscriptions/', '/v1/subscriptions/?limit=1']),
  get('Subscriptions', '/subscriptions/{subscriptionID}/', ({ subscriptions }) =>
    [...subscriptions, 'no-such-one'].map((id) => `/v1/subscriptions/${enc(id)}/`),
  ),
  list('Patches', '/patches', () => [
    '/v1/patches',
    '/v1/patches?limit=7',
    '/v1/patches?limit=1000',
    '/v1/patches?limit=1001',
    '/v1/patches?limit=0',
    '/v1/patches?limit=many',
    '/v1/patches?cve_id=CVE-0000-0000',
    '/v1/patches?ecosystem=debian&severities=critical&ticket_statuses=open',
    '/v1/patches?ecosystem=debian&limit=5',
    '/v1/patches?ecosystem=windows',
    '/v1/patches?package_src_name=curl',
    '/v1/patches?severities=critical,high&limit=9',
    '/v1/patches?severities=urgent',
    '/v1/patches?ticket_statuses=open,in_progress,done,deferred&limit=4',
    '/v1/patches?ticket_statuses=closed',
    '/v1/patches?order=created_at:desc&limit=11',
    '/v1/patches?order=created_at:asc&limit=11',
    '/v1/patches?order=severity:asc&limit=50',
    '/v1/patches?order=updated_at:desc&ecosystem=alpine&limit=3',
    '/v1/patches?order=created_at',
    '/v1/patches?order=created_at:up',
    '/v1/patches?after=nonsense',
  ]),
  list('Image catalog', '/images/', () => ['/v1/images/', '/v1/images/?limit=2']),
  get('Image catalog', '/images/{imageID}', ({ images }) =>
    [...images, 'no-such-image'].map((id) => `/v1/images/${enc(id)}`),
  ),
  list('Image catalog', '/images/{imageRepo}/tags', ({ repos }) =>
    [...repos, 'no/such/repo'].flatMap((repo) => [`/v1/images/${repo}/tags`, `/v1/images/${repo}/tags?limit=2`]),
  ),
  list('Image catalog', '/tags/', () => ['/v1/tags/', '/v1/tags/?limit=3']),
  get('Image catalog', '/tags/{tagID}', ({ tags }) => ids('/v1/tags/', tags, '')),
  get('Image catalog', '/tags/{tagID}/sbom', ({ tags }) => [
    ...ids('/v1/tags/', tags, '/sbom'),
    ...ids('/v1/images/tags/', tags, '/sbom'),
  ]),
  get('Image catalog', '/tags/{tagID}/vex', ({ tags }) => ids('/v1/tags/', tags, '/vex')),
  get('Image catalog', '/tags/{tagID}/provenance', ({ tags }) => ids('/v1/tags/', tags, '/provenance')),
  list('Packages', '/packages/', () => ['/v1/packages/', '/v1/packages/?limit=5']),
  get('Packages', '/packages/{pkgID}/', ({ packages }) => ids('/v1/packages/', packages, '/')),
  get('Packages', '/packages/{pkgID}/artifacts/patches', ({ packages }) =>
    ids('/v1/packages/', packages, '/artifacts/patches'),
  ),
  get('Packages', '/packages/{pkgID}/artifacts/provenance', ({ packages }) =>
    ids('/v1/packages/', packages, '/artifacts/provenance'),
  ),
  get('Package catalog', '/packages/ecosystems/{ecosystem}/packages/{name}/versions', (known) =>
    release(known, () => ''),
  ),
  get('Package catalog', '…/versions/{version}/cves', (known) =>
    release(known, ({ version }) => `/${enc(version)}/cves`),
  ),
  get('Package catalog', '…/versions/{version}/details', (known) =>
    release(known, ({ version }) => `/${enc(version)}/details`),
  ),
  get('Package catalog', '…/versions/{version}/provenance/{arch}', (known) =>
    release(known, ({ version, arch }) => `/${enc(version)}/provenance/${enc(arch)}`),
  ),
  get('AVR artifacts', '/avrs/{avrID}/artifacts/sbom', ({ avrs }) => ids('/v1/avrs/', avrs, '/artifacts/sbom')),
  get('AVR artifacts', '/avrs/{avrID}/artifacts/vex', ({ avrs }) => ids('/v1/avrs/', avrs, '/artifacts/vex')),
  get('AVR artifacts', '/avrs/{avrID}/artifacts/provenance', ({ avrs }) =>
    ids('/v1/avrs/', avrs, '/artifacts/provenance'),
  ),
  get(FEEDS, '/external/patch_feed', () => [
    '/external/patch_feed',
    '/external/patch_feed?ecosystem=debian',
    '/external/patch_feed?package_src_name=curl',
  ]),
  get(FEEDS, '/external/osv/all.json', () => ['/external/osv/all.json']),
  get(FEEDS, '/external/osv/{osv_id}.json', ({ osv }) => osv.map((id) => `/external/osv/${enc(id)}.json`)),
  get(FEEDS, '/external/globals/sys_matrix', () => ['/external/globals/sys_matrix']),
  list('Identity surface', '{identity_api_url}/users', () => ['/v1/users', '/v1/users?limit=2']),
]

function ids(before: string, known: readonly string[], after: string): string[] {
  return [...known, 'no-such-thing'].map((id) => `${before}${enc(id)}${after}`)
}

const writes = (table: string, method: 'POST' | 'DELETE', path: string, local: string): Row => ({
  table,
  method,
  isList: false,
  path,
  requests: () => [local],
})

/** Every row of the contract that changes something, which the mirror refuses. */
export const WRITING: readonly Row[] = [
  writes('API keys', 'POST', '/api_keys/', '/v1/api_keys/'),
  writes('API keys', 'DELETE', '/api_keys/{apiKeyID}/', '/v1/api_keys/some-id/'),
  writes('Subscriptions', 'POST', '/subscriptions/', '/v1/subscriptions/'),
  writes('Subscriptions', 'DELETE', '/subscriptions/', '/v1/subscriptions/'),
  writes('Webhook settings', 'POST', '/v3/settings/webhooks', '/v3/settings/webhooks'),
  writes(
    'Webhook settings',
    'POST',
    '/v3/settings/webhooks/{webhookSubscriptionID}/test-tag-created',
    '/v3/settings/webhooks/some-id/test-tag-created',
  ),
  writes('Identity surface', 'POST', '{auth_url}/oauth/token', '/oauth/token'),
]

/** Identifiers of the sandbox that the mirror has stored. */
export function knownOf({ sandbox, store }: CatalogBench): Known {
  const owners = new Set([...store.catalog.eachStoredAnswer()].map(({ owner }) => owner))
  return knownBy(sandbox, (kind) =>
    [...owners].filter((owner) => owner.startsWith(`${kind}/`)).map((owner) => owner.slice(kind.length + 1)),
  )
}

/** All that the sandbox has: what a mirror whose scope is everything must answer. */
export function allKnown({ sandbox }: Pick<CatalogBench, 'sandbox'>): Known {
  return knownBy(sandbox, (kind) => sandbox.service.ids(kind))
}

type Kind = 'tags' | 'images' | 'packages' | 'avrs' | 'apiKeys' | 'subscriptions'

function knownBy({ service, feed }: CatalogBench['sandbox'], ids: (kind: Kind) => string[]): Known {
  const text = (kind: 'images' | 'packages', id: string, field: string): string => String(service.read(kind, id)[field])
  const images = ids('images')
  const packages = ids('packages')
  return {
    tags: ids('tags'),
    images,
    repos: images.map((id) => text('images', id, 'repository')),
    packages,
    avrs: ids('avrs'),
    apiKeys: ids('apiKeys'),
    subscriptions: ids('subscriptions'),
    releases: packages.map((id) => ({
      ecosystem: text('packages', id, 'ecosystem'),
      name: text('packages', id, 'name'),
      version: text('packages', id, 'version'),
      arch: text('packages', id, 'arch'),
    })),
    osv: feed.ids(),
  }
}
