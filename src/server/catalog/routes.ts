import type { Config } from '../../config/schema.ts'
import {
  type CatalogResource,
  IDENTITY_VERSIONS,
  RELEASES,
  RESOURCES,
  atVersion,
  identityVersion,
} from '../../base/domain/resources.ts'
import { type ReadTools, createAnswers } from './answers.ts'
import { createLists } from './lists.ts'
import { DOCUMENT_CONTRACT, artifactContract, itemContract, listContract } from '../contract/catalog.ts'
import type { PathOperation } from '../contract/openapi.ts'
import { createMissing } from './not-found.ts'
import { DOCUMENT_PATH, sendDocument } from './documents.ts'
import { addPrivateRoutes } from '../access/private-routes.ts'
import type { ServerPlugin, ServerTools } from '../plugin.ts'
import { readLinkTerms } from '../access/signed-links.ts'
import { askingOf } from '../reading/asking.ts'
import type { ReadRequest, ReadRoute } from '../reading/request.ts'
import type { PrivateRoute, RouteCall } from '../access/private-route.ts'

/**
 * What is behind a credential, from the same declarations that the crawl follows: lists, items, artifacts, the package
 * catalog. Its answers are made on the reading thread: how long one takes depends on the data.
 */
export function createReadRoutes(config: Config, tools: ReadTools): ReadRoute[] {
  const { strictParameters } = config.server
  const parts = { tools, missing: createMissing(config, tools.served), strictParameters }
  const answers = createAnswers(parts)
  const lists = createLists(parts)
  const routesOf = (resource: CatalogResource): ReadRoute[] => {
    const { list, item, sublist, artifacts } = resource
    const source = resource.surface === 'identity' ? 'identity' : 'catalog'
    const itemRoute = (path: string, template: string, contract: PathOperation): ReadRoute => ({
      path,
      source: 'catalog',
      contract,
      answer: (call) => answers.send(call, resource, template),
    })
    return [
      ...[list, sublist].flatMap((one): ReadRoute[] =>
        one === null
          ? []
          : [
              {
                path: one.path,
                source,
                contract: listContract(resource, one),
                answer: (call) => lists.send(call, resource, one),
              },
            ],
      ),
      ...(item === null ? [] : [itemRoute(item, item, itemContract(resource, item))]),
      ...artifacts.flatMap(({ path, aliases }) =>
        [path, ...aliases].map((form) => itemRoute(form, path, artifactContract(resource, form))),
      ),
    ]
  }
  const releases = Object.values(RELEASES).map((path): ReadRoute => {
    const contract = path === RELEASES.provenance ? artifactContract(null, path) : itemContract(null, path)
    return { path, source: 'catalog', contract, answer: (call) => answers.send(call, null, path) }
  })
  return [...versioned(config).flatMap(routesOf), ...releases]
}

/** The resources, those of the identity surface once for each of its versions. */
function versioned({ identity }: Config): CatalogResource[] {
  const own = identityVersion(identity.apiUrl)
  const versions = new Set([...IDENTITY_VERSIONS, ...(own === null ? [] : [own])])
  return RESOURCES.flatMap((resource) =>
    resource.surface === 'identity' ? [...versions].map((version) => atVersion(resource, version)) : [resource],
  )
}

/** The local routes of the catalog, and of the documents that signed links lead to. */
export const catalogRoutes: ServerPlugin = (app, tools, done) => {
  const routes = createReadRoutes(tools.config, { ...tools, orderings: null }).map(
    ({ path, source, contract }): PrivateRoute => ({
      path: path.replace('{repo}', '{repo+}').replace('{name}', '{name+}'),
      source,
      contract,
      answer: (call) => pass(tools, path, call),
    }),
  )
  const documents: PrivateRoute = {
    path: `${DOCUMENT_PATH}{digest}`,
    opensWith: 'link',
    contract: DOCUMENT_CONTRACT,
    answer(call: RouteCall) {
      const { asOf, ...terms } = readLinkTerms(call.query)
      const document = { digest: call.params['digest'] ?? '', ...terms }
      return sendDocument(tools.served, call, document, asOf)
    },
  }
  addPrivateRoutes(app, tools, [...routes, documents])
  done()
}

/** Passes a request to the reading thread and sends its reply. */
async function pass({ served, now, links, reading }: ServerTools, path: string, call: RouteCall): Promise<void> {
  const { request, response, requestHeaders, params, query } = call
  const asked: ReadRequest = {
    path,
    method: request.method ?? '',
    params,
    requestHeaders,
    query: query.toString(),
    baseUrl: call.baseUrl(),
    now: now(),
    served: served.servedPin?.stamp() ?? null,
    linkSecret: links.secret(),
  }
  const reply = await reading.ask(asked, askingOf(response))
  if (reply === null) return
  if ('problem' in reply) return call.refuse(reply.problem)
  if ('document' in reply) return sendDocument(served, call, reply.document, reply.asOf)
  response.writeHead(reply.status, [...reply.headers])
  response.end(reply.body)
}
