import { canonicalPath } from './path-templates.ts'

/**
 * What the mirror stores of the service behind a credential, each resource declared once: its paths, its list, the
 * identifiers of its items and their artifacts (service API, section 4). The crawl, the store and the local routes
 * follow from this table; another resource is another entry.
 */
export type ResourceSurface = 'remediation' | 'catalog' | 'identity'

/** What a document must be to be accepted. `text`: anything except an HTML page. */
export type DocumentKind = 'sbom' | 'vex' | 'provenance' | 'text'

/** A query parameter that filters a list, and the field of an item that it compares. */
export interface Facet {
  /** Name of the query parameter; null: the field can only be used for ordering. */
  readonly param: string | null
  readonly field: string
  /** The only valid values; undefined: any text. */
  readonly values?: readonly string[]
  /** Whether several values, separated by commas, are allowed. */
  readonly many?: boolean
  /** Whether values are the same in upper and lower case; they are compared in upper case. */
  readonly isUpperCase?: boolean
}

/** A paged list. `path` may contain `{repo}`: then there is one list per parent item. */
export interface ListPath {
  readonly path: string
  readonly facets: readonly Facet[]
}

/** A path whose answer links to documents, or is the document itself. */
interface ArtifactPath {
  readonly path: string
  /** Other forms of the same path. */
  readonly aliases: readonly string[]
  readonly document: DocumentKind
}

/** One kind of resource. `{id}` in its paths is an item's own identifier. */
export interface CatalogResource {
  readonly name: string
  readonly surface: ResourceSurface
  readonly list: ListPath | null
  /** Path of the details of one item, or, without an `{id}`, of a single document. */
  readonly item: string | null
  /** A further list per item. */
  readonly sublist: ListPath | null
  readonly artifacts: readonly ArtifactPath[]
  /** Fields that identify an item in a list: the first one with a value is used, in any spelling. */
  readonly ids: readonly string[]
  /** `scoped`: details and artifacts are mirrored only for items in scope; lists are always complete. */
  readonly reach: 'always' | 'scoped'
  /** The word of `catalog.personalData` that enables it; null: always enabled. */
  readonly personal: 'apiKeys' | 'users' | null
  /** Whether its items may contain key material, which is removed before anything is stored. */
  readonly secrets: boolean
}

/** The ecosystems of packages (service API, section 2). */
export const ECOSYSTEMS: readonly string[] = ['alpine', 'debian', 'ubuntu', 'pypi', 'npm', 'maven']
const SEVERITIES = ['critical', 'high', 'medium', 'low']
const TICKETS = ['open', 'in_progress', 'done', 'deferred']

/** The list of patches. */
export const PATCHES: ListPath = {
  path: '/v1/patches',
  facets: [
    { param: 'cve_id', field: 'cve_id', isUpperCase: true },
    { param: 'package_src_name', field: 'package_src_name' },
    { param: 'ecosystem', field: 'ecosystem', values: ECOSYSTEMS },
    { param: 'severities', field: 'severity', values: SEVERITIES, many: true },
    { param: 'ticket_statuses', field: 'ticket_status', values: TICKETS, many: true },
    { param: null, field: 'created_at' },
    { param: null, field: 'updated_at' },
  ],
}

const PLAIN = {
  surface: 'remediation',
  list: null,
  item: null,
  sublist: null,
  artifacts: [],
  ids: ['id'],
  reach: 'always',
  personal: null,
  secrets: false,
} as const satisfies Omit<CatalogResource, 'name'>

/** Reports whether a source mirrors a resource: the identity surface has its own source and its own credential. */
export function ownsResource(source: string, resource: string): boolean {
  return (resource === 'users') === (source === 'identity')
}

/** Returns the resource that an answer's owner (`resource/id`) is of. */
export function resourceOf(owner: string): string {
  const [resource = ''] = owner.split('/', 1)
  return resource
}

/** Versions of the identity surface (service API, section 9); its base names one of them. */
export const IDENTITY_VERSIONS: readonly string[] = ['v1', 'v2-beta', 'v0']

/** Returns the version at the end of a base URL of the identity surface (`https://host/v2-beta`); null without one. */
export function identityVersion(base: string | null): string | null {
  return base === null ? null : (/\/(v\d+(?:-[a-z]+)?)$/.exec(base)?.[1] ?? null)
}

/** Returns a resource with its list under a version of its surface; only the identity surface has several. */
export function atVersion(resource: CatalogResource, version: string | null): CatalogResource {
  const { surface, list } = resource
  if (surface !== 'identity' || list === null || version === null) return resource
  return { ...resource, list: { ...list, path: list.path.replace(/^\/[^/]+/, `/${version}`) } }
}

/** All mirrored resources, in crawl order. */
export const RESOURCES: readonly CatalogResource[] = [
  { ...PLAIN, name: 'account', item: '/v1/me', secrets: true },
  { ...PLAIN, name: 'organization', item: '/v1/orgs/', secrets: true },
  {
    ...PLAIN,
    name: 'apiKeys',
    ids: ['id', 'api_key_id', 'key_id'],
    list: { path: '/v1/api_keys/', facets: [] },
    item: '/v1/api_keys/{id}/',
    personal: 'apiKeys',
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
    list: PATCHES,
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
    personal: 'users',
    secrets: true,
  },
]

/**
 * The package catalog (`{catalog_url}`, section 4): four paths built from a package's own fields. `versions` is one
 * answer per package name, the others one per version; `provenance` is one per version and architecture.
 */
export const RELEASES = {
  versions: '/packages/ecosystems/{ecosystem}/packages/{name}/versions',
  cves: '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/cves',
  details: '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/details',
  provenance: '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/provenance/{arch}',
} as const

/** Returns the resource with a name; throws for an unknown one. */
export function resourceNamed(name: string): CatalogResource {
  const found = RESOURCES.find((resource) => resource.name === name)
  if (found === undefined) throw new Error(`no resource ${name}`)
  return found
}

/** Returns the canonical path of a resource's list; '' where it has none. */
export function listPathOf({ list }: Pick<CatalogResource, 'list'>): string {
  return list === null ? '' : (canonicalPath(list.path) ?? list.path)
}

/** The list of tags, by its canonical path. */
export const TAGS = listPathOf(resourceNamed('tags'))
