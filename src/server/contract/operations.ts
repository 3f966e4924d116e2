import { surfaceOf, errorForm } from '../access/surface.ts'
import type { PeoplePage } from '../people.ts'
import type { PrivateRoute } from '../access/route-table.ts'
import { problems } from './answers.ts'
import { pathParameters } from './catalog.ts'
import { feedContract } from './feeds.ts'
import type { PathContract, PathOperation, SecurityRequirement } from './openapi.ts'
import { DELIVERY_CONTRACT } from './deliveries.ts'
import type { ContractEntry } from './known-parameters.ts'
import { OWN_CONTRACTS } from './own-pages.ts'
import { PAGE_FILE_CONTRACT, pageContract } from './people.ts'
import { BUCKET_CONTRACTS, QUERY_CONTRACTS } from './scanners.ts'

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

/** Returns what each path of these tables takes and answers. */
export function contracts({
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
