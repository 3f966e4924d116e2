import { isDeepStrictEqual } from 'node:util'
import { onTestFinished } from 'vitest'
import type { SourceName } from '../../../src/base/domain/sources.ts'
import type { LoggedRequest } from '../../sandbox/request-log.ts'
import type { ServiceOptions } from '../../sandbox/service/options.ts'
import type { Run } from '../../../src/store/runs/runs.ts'
import { type CatalogBench, catalogEnv, filledCatalogBench } from '../../support/catalog/mirror.ts'
import { compare } from '../../support/catalog/compare.ts'
import { READING, knownOf } from '../../support/catalog/contract.ts'
import { copyFilledFolder } from '../../support/filled-folder.ts'
import { type Bench, type BenchOptions, createBench } from '../../support/mirror.ts'
import { LONG } from '../../support/tables.ts'

/** A service so small that a sync of it takes milliseconds. */
export const SMALL: ServiceOptions = {
  images: 2,
  tags: 4,
  packages: 3,
  tickets: 12,
  avrs: 2,
  users: 2,
  subscriptions: 2,
}

/** A service whose list of tickets has two pages. */
export const TWO_PAGES: ServiceOptions = {
  ...SMALL,
  images: 1,
  tags: 2,
  packages: 1,
  avrs: 0,
  tickets: 1100,
}

/** Mirrors all of it: what a fault hits is in scope. */
export const ALL = { PATCHMIRROR_CATALOG_SCOPE: 'all' }

/** Paths of the sandbox, as its faults and its log know them. */
export const TAG_LIST = '/v1/tags/'
export const TAG = /^\/v1\/tags\/[^/]+$/
export const SBOM = /^\/v1\/tags\/[^/]+\/sbom$/
export const DOCUMENT = /^\/artifacts\//

/** A bench without a server, closed when the test ends. */
export async function bench(
  service: ServiceOptions = SMALL,
  { env, envOf = catalogEnv, ...options }: BenchOptions = {},
): Promise<Bench> {
  const made = await createBench({
    ...options,
    sandbox: { records: 5, ...options.sandbox, service },
    envOf: (sandbox) => ({ ...ALL, ...envOf(sandbox), ...env }),
  })
  onTestFinished(() => made.close())
  return made
}

/** A mirror that serves, its first sync done; nothing was requested of its sandbox yet. */
export async function mirrored(
  service: ServiceOptions = SMALL,
  env: Record<string, string> = {},
  options: BenchOptions = {},
): Promise<CatalogBench> {
  return filledCatalogBench(service, { ...ALL, ...env }, options)
}

/** A data folder whose first sync of the catalog, and of other sources if given, is done. */
export function filledFolder(
  service: ServiceOptions,
  env: Record<string, string> = {},
  sources: readonly SourceName[] = ['catalog'],
): Promise<string> {
  const envOf = (sandbox: Bench['sandbox']) => ({ ...ALL, ...catalogEnv(sandbox), ...env })
  const sandbox = { records: 5, service }
  return copyFilledFolder({ sandbox, env, envOf }, sources)
}

const PRIVATE = READING.filter(
  ({ table, path }) => !/^(Public feeds|API keys|Identity surface)$/.test(table) && path !== '',
)

/** Filtered lists, and the second path of an SBOM: they follow from what other paths read. Only the long suite asks for them. */
const FOLLOWS = /\?(?!limit=)|^\/v1\/images\/tags\//

/**
 * Returns the paths at which the mirror does not answer what the service answers; without key and user lists, which differ
 * by account.
 */
export async function differences(made: CatalogBench): Promise<string[]> {
  const known = knownOf(made)
  const paths = PRIVATE.flatMap(({ requests }) => requests(known))
  const found: string[] = []
  for (const path of paths.filter((path) => LONG || !FOLLOWS.test(path))) {
    const { mirror, upstream } = await compare(made, path)
    if (!isDeepStrictEqual(mirror, upstream)) found.push(path)
  }
  return found
}

/** The log's requests as `GET /path`, each with the page's cursor if it has one. */
export function asked(made: Bench, host?: LoggedRequest['host']): string[] {
  return made.sandbox.requests.entries
    .filter((entry) => host === undefined || entry.host === host)
    .map(({ path, query }) => (query['after'] === undefined ? path : `${path} after`))
}

/** Returns the paths that a run could not fetch, with the reasons. */
export function lackingOf({ facts }: Run): string[] {
  const told = facts['lackingIds']
  return Array.isArray(told) ? told.map(String) : []
}
