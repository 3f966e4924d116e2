import { compareText } from '../../base/versions/order.ts'
import { surfaceOf, errorForm } from '../access/surface.ts'
import type { PeoplePage } from '../people.ts'
import type { PrivateRoute } from '../access/route-table.ts'
import { HEADER_COMPONENTS, PROBLEM_RESPONSES, problems } from './answers.ts'
import { pathParameters } from './catalog.ts'
import { PARAMETERS, SECURITY_SCHEMES } from './components.ts'
import { feedContract } from './feeds.ts'
import type { OpenApiDocument, PathContract, PathOperation, SecurityRequirement } from './openapi.ts'
import { DELIVERY_CONTRACT } from './deliveries.ts'
import type { ContractEntry } from './known-parameters.ts'
import { OWN_CONTRACTS } from './own-pages.ts'
import { PAGE_FILE_CONTRACT, pageContract } from './people.ts'
import { shareParts } from './shared-parts.ts'
import { BUCKET_CONTRACTS, QUERY_CONTRACTS } from './scanners.ts'
import { SCHEMAS } from './schemas.ts'

/** The tables of routes of a running server. */
export interface ContractTables {
  /** Mirrored paths that need no key, as `createPaths` has them. */
  readonly publicPaths: readonly string[]
  readonly privateRoutes: readonly Omit<PrivateRoute, 'answer'>[]
  /** Where deliveries come in on this listener. */
  readonly hookPaths: readonly string[]
  readonly people: readonly PeoplePage[]
  readonly version: string
  /** What the paths are below: `server.publicUrl`, or the path prefix that a proxy takes off, or `/`. */
  readonly server: string
}

const INTRODUCTION = [
  'The paths of the service, read-only, and a few of the mirror.',
  'HEAD is as GET; any other method is 405.',
  'A slash at the end changes nothing, except under /external/, /osv/ and /-/.',
  'Answers may be compressed (`Accept-Encoding: gzip`), except archives. A malformed request is 400, 408 or 431.',
  'While all connections are in use, all but /-/health is 503.',
].join('\n\n')

const TAGS = [
  ['Public feeds', "The service's public feeds. They need no key."],
  ['Scanners', "osv.dev's bucket and query API over the mirrored records. They need no key."],
  ['Catalog', 'What the service shows behind a credential.'],
  ['Package catalog', 'Versions of packages.'],
  ['Identity', 'Users, where a setting allows it.'],
  ['VEX repository', 'OpenVEX documents, for Trivy.'],
  ['Mirror', "The mirror's own pages."],
  ['Pages', 'Pages for people.'],
  ['Webhooks', 'Deliveries of the service.'],
] as const

/** Builds the document from the tables of routes. */
export function buildContract({ version, server, ...tables }: ContractTables): OpenApiDocument {
  const written: OpenApiDocument['paths'] = Object.fromEntries(
    contracts(tables).map(([path, contract]) => [
      path,
      Object.fromEntries(
        Object.entries(contract).map(([method, operation]) => [
          method,
          { operationId: operationId(method, path), ...operation },
        ]),
      ),
    ]),
  )
  const { paths, shared } = shareParts(written)
  const used = new Set(Object.values(paths).flatMap((one) => Object.values(one).flatMap((o) => o.tags)))
  return {
    openapi: '3.1.1',
    info: {
      title: 'Patchmirror',
      version,
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server }],
    externalDocs: { url: 'docs', description: 'As a page.' },
    tags: TAGS.filter(([name]) => used.has(name)).map(([name, description]) => ({
      name,
      description,
    })),
    paths: Object.fromEntries(Object.entries(paths).sort(compareAnswers)),
    components: { ...usedComponents(paths, shared), securitySchemes: SECURITY_SCHEMES },
  }
}

type Paths = OpenApiDocument['paths']
type PathEntry = readonly [path: string, operations: Paths[string]]

/** Paths with the same answers stand together: gzip finds repetitions only nearby. */
function compareAnswers([, one]: PathEntry, [, other]: PathEntry): number {
  return compareText(answersOf(one), answersOf(other))
}

function answersOf(operations: PathEntry[1]): string {
  return Object.values(operations)
    .map(({ responses }) => `${Object.keys(responses).join()} ${JSON.stringify(responses)}`)
    .join()
}

/** The form of a path in the document: `{name+}` takes several segments, for which OpenAPI has no form. */
export function contractPath(path: string): string {
  return path.replaceAll('+}', '}')
}

/** The contracts of the mirror's own paths that check their query: all but deliveries and signed links. */
export function checkedContracts(tables: Pick<ContractTables, 'privateRoutes' | 'people'>): ContractEntry[] {
  const { people, privateRoutes } = tables
  const routes = privateRoutes.filter(({ guard }) => guard !== 'link')
  return contracts({ publicPaths: [], hookPaths: [], people, privateRoutes: routes })
}

function contracts({
  publicPaths,
  privateRoutes,
  hookPaths,
  people,
}: Omit<ContractTables, 'version' | 'server'>): ContractEntry[] {
  return [
    ...publicPaths.map((path): ContractEntry => [path, publicContract(path)]),
    ...privateRoutes.map((route): ContractEntry => [contractPath(route.path), privateContract(route)]),
    ...Object.entries(OWN_CONTRACTS),
    ...people.map((page): ContractEntry => [page.path, pageContract(page)]),
    ...(people.length === 0 ? [] : [PAGE_FILE_CONTRACT]),
    ...hookPaths.map((path): ContractEntry => [path, DELIVERY_CONTRACT]),
  ]
}

function publicContract(path: string): PathContract {
  const known: Readonly<Record<string, PathContract>> = { ...BUCKET_CONTRACTS, ...QUERY_CONTRACTS }
  return known[path] ?? feedContract(path)
}

const KEY: readonly SecurityRequirement[] = [{ bearer: [] }, { basic: [] }]
const LINK: readonly SecurityRequirement[] = [{ link: [] }]

/** A route's own contract, with what the only way to private routes adds: the credential, and problems in the surface's form. */
function privateContract({ path, guard, contract }: Omit<PrivateRoute, 'answer'>): PathContract {
  const { get } = contract ?? { get: undescribed(path) }
  if (get === undefined) return {}
  if (guard === 'link') return { get: { ...get, security: LINK } }
  const form = errorForm(surfaceOf(path))
  const responses = { ...problems(form, 400, 401, 404, 429, 500, 503), ...get.responses }
  return { get: { ...get, responses, security: KEY } }
}

/** A route that declares no contract: it is listed, and takes what is in its path. */
function undescribed(path: string): PathOperation {
  const parameters = pathParameters(contractPath(path))
  return {
    summary: '',
    tags: ['Catalog'],
    parameters,
    responses: { 200: { description: 'The answer.' } },
  }
}

/** A name such as `getV1TagsIdSbom`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  const named = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return `${method}${named.join('') || 'Root'}`
}

const COMPONENTS: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  schemas: SCHEMAS,
  responses: PROBLEM_RESPONSES,
  parameters: PARAMETERS,
  headers: HEADER_COMPONENTS,
}

/** The components that the paths refer to, directly or through others; `shared`: those made of equal parts. */
function usedComponents(
  paths: object,
  shared: Readonly<Record<string, Readonly<Record<string, object>>>>,
): Record<string, Record<string, object>> {
  const used: Record<string, Record<string, object>> = {}
  const follow = (part: object): void => {
    for (const [, kind = '', name = ''] of JSON.stringify(part).matchAll(/#\/components\/(\w+)\/([\w-]+)/g)) {
      const component = shared[kind]?.[name] ?? COMPONENTS[kind]?.[name]
      if (component === undefined || used[kind]?.[name] !== undefined) continue
      used[kind] = { ...used[kind], [name]: component }
      follow(component)
    }
  }
  follow(paths)
  return used
}
