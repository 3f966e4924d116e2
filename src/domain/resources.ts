/**
 * What the mirror holds of the service behind a credential, each thing declared once: its paths, how it is listed, how
 * its items are named and which artifacts hang on them (service API, section 4). The crawl, the store and the local
 * routes follow from this table; another resource is another entry.
 */
export type ResourceSurface = 'remediation' | 'catalog' | 'identity'

/** What a document must be to be believed. `text`: anything but a page of HTML. */
export type DocumentKind = 'sbom' | 'vex' | 'provenance' | 'text'

/** A query parameter that narrows a list, and the field of an item that it compares. */
export interface Facet {
  /** Name of the query parameter; null: the field can only be ordered by. */
  readonly param: string | null
  readonly field: string
  /** The only values that make sense; undefined: any text. */
  readonly values?: readonly string[]
  /** Several values, separated by commas. */
  readonly many?: boolean
}

/** A paged list. `path` may hold `{repo}`: then there is one list for each parent item. */
export interface ListPath {
  readonly path: string
  readonly facets: readonly Facet[]
}

/** A path whose answer names documents by URL, or is the document itself. */
interface ArtifactPath {
  readonly path: string
  /** Other forms of the same path. */
  readonly aliases: readonly string[]
  readonly document: DocumentKind
}

/** One kind of thing. `{id}` in its paths is an item's own identifier. */
export interface CatalogResource {
  readonly name: string
  readonly surface: ResourceSurface
  readonly list: ListPath | null
  /** Details of one item, or, without an `{id}`, a document of its own. */
  readonly item: string | null
  /** A further list for each item. */
  readonly sublist: ListPath | null
  readonly artifacts: readonly ArtifactPath[]
  /** Fields that name an item in a list, the first that has a value, in whatever spelling. */
  readonly ids: readonly string[]
  /** `scoped`: details and artifacts of an item only when the scope holds it; lists are always whole. */
  readonly reach: 'always' | 'scoped'
  /** The setting that switches it on; null: always on. */
  readonly setting: 'catalog.mirrorApiKeys' | 'identity.mirrorUsers' | null
  /** Its items may carry key material, which is cut out before anything is stored. */
  readonly secrets: boolean
}

/** The ecosystems of packages (service API, section 2). */
export const ECOSYSTEMS: readonly string[] = ['alpine', 'debian', 'ubuntu', 'pypi', 'npm', 'maven']
const SEVERITIES = ['critical', 'high', 'medium', 'low']
const TICKETS = ['open', 'in_progress', 'done', 'deferred']

const PLAIN = {
  surface: 'remediation',
  list: null,
  item: null,
  sublist: null,
  artifacts: [],
  ids: ['id'],
  reach: 'always',
  setting: null,
  secrets: false,
} as const satisfies Omit<CatalogResource, 'name'>

/** Whether a source mirrors a resource: the identity surface has a source, and a credential, of its own. */
export function ownsResource(source: string, resource: string): boolean {
  return (resource === 'users') === (source === 'identity')
}

/** Versions of the identity surface (service API, section 9); its base names one of them. */
export const IDENTITY_VERSIONS: readonly string[] = ['v1', 'v2-beta', 'v0']

/** The version at the end of a base of the identity surface (`https://host/v2-beta`); null: there is no base. */
export function identityVersion(base: string | null): string | null {
  return base === null ? null : (/\/(v\d+(?:-[a-z]+)?)$/.exec(base)?.[1] ?? null)
}

/** A resource with its list under a version of its surface: the identity surface has several, the others one. */
export function atVersion(resource: CatalogResource, version: string | null): CatalogResource {
  const { surface, list } = resource
  if (surface !== 'identity' || list === null || version === null) return resource
  return { ...resource, list: { ...list, path: list.path.replace(/^\/[^/]+/, `/${version}`) } }
}

/** Every mirrored resource, in the order in which they are walked. */
export const RESOURCES: readonly CatalogResource[] = [
  { ...PLAIN, name: 'account', item: '/v1/me', secrets: true },
  { ...PLAIN, name: 'organization', item: '/v1/orgs/', secrets: true },
  {
    ...PLAIN,
    name: 'apiKeys',
    ids: ['id', 'api_key_id', 'key_id'],
    list: { path: '/v1/api_keys/', facets: [] },
    item: '/v1/api_keys/{id}/',
    setting: 'catalog.mirrorApiKeys',
    secrets: true,
  },
  {
    ...PLAIN,
    name: 'subscriptions',
    ids: ['id', 'subscription_id'],
    list: { path: '/v1/subscriptions/', facets: [] },
    item: '/v1/subscriptions/{id}/',
    secrets: true,
  },
  {
    ...PLAIN,
    name: 'patches',
    list: {
      path: '/v1/patches',
      facets: [
        { param: 'cve_id', field: 'cve_id' },
        { param: 'package_src_name', field: 'package_src_name' },
        { param: 'ecosystem', field: 'ecosystem', values: ECOSYSTEMS },
        { param: 'severities', field: 'severity', values: SEVERITIES, many: true },
        { param: 'ticket_statuses', field: 'ticket_status', values: TICKETS, many: true },
        { param: null, field: 'created_at' },
        { param: null, field: 'updated_at' },
      ],
    },
    ids: ['ticket_id', 'id'],
  },
  {
    ...PLAIN,
    name: 'images',
    ids: ['id', 'image_id'],
    list: { path: '/v1/images/', facets: [] },
    item: '/v1/images/{id}',
    sublist: { path: '/v1/images/{repo}/tags', facets: [] },
    reach: 'scoped',
  },
  {
    ...PLAIN,
    name: 'tags',
    ids: ['id', 'tag_id'],
    list: { path: '/v1/tags/', facets: [] },
    item: '/v1/tags/{id}',
    artifacts: [
      { path: '/v1/tags/{id}/sbom', aliases: ['/v1/images/tags/{id}/sbom'], document: 'sbom' },
      { path: '/v1/tags/{id}/vex', aliases: [], document: 'vex' },
      { path: '/v1/tags/{id}/provenance', aliases: [], document: 'provenance' },
    ],
    reach: 'scoped',
  },
  {
    ...PLAIN,
    name: 'packages',
    ids: ['id', 'package_id', 'pkg_id'],
    list: { path: '/v1/packages/', facets: [] },
    item: '/v1/packages/{id}/',
    artifacts: [
      { path: '/v1/packages/{id}/artifacts/patches', aliases: [], document: 'text' },
      { path: '/v1/packages/{id}/artifacts/provenance', aliases: [], document: 'provenance' },
    ],
    reach: 'scoped',
  },
  {
    ...PLAIN,
    name: 'avrs',
    artifacts: [
      { path: '/v1/avrs/{id}/artifacts/sbom', aliases: [], document: 'sbom' },
      { path: '/v1/avrs/{id}/artifacts/vex', aliases: [], document: 'vex' },
      { path: '/v1/avrs/{id}/artifacts/provenance', aliases: [], document: 'provenance' },
    ],
  },
  {
    ...PLAIN,
    name: 'users',
    surface: 'identity',
    list: { path: '/v1/users', facets: [] },
    ids: ['id', 'user_id'],
    setting: 'identity.mirrorUsers',
    secrets: true,
  },
]

/**
 * The package catalog (`{catalog_url}`, section 4): four paths that follow from a package's own fields. `versions` is
 * one answer for each package name, the others one for each version, the last one for each architecture too.
 */
export const RELEASES = {
  versions: '/packages/ecosystems/{ecosystem}/packages/{name}/versions',
  cves: '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/cves',
  details: '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/details',
  provenance:
    '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/provenance/{arch}',
} as const
