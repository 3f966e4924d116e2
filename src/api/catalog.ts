import type { Config } from '../config/schema.ts'
import { RELEASES, RESOURCES, type Resource } from '../resources.ts'
import { createAnswers } from './catalog-answers.ts'
import { createLists } from './catalog-lists.ts'
import { createMissing } from './catalog-missing.ts'
import { DOCUMENT_PATH, sendDocument } from './catalog-documents.ts'
import type { SourceName } from '../store/runs.ts'
import type { RouteTools } from './gate.ts'
import type { PrivateRoute, RouteCall } from './routes.ts'

/**
 * The local routes of everything behind a credential, from the same declarations that the crawl follows: lists, items,
 * artifacts, the package catalog, and the documents that signed links lead to.
 */
export function createCatalogRoutes(config: Config): (tools: RouteTools) => PrivateRoute[] {
  return (tools) => {
    const { strictParameters } = config.server
    const parts = { tools, missing: createMissing(config, tools.moment), strictParameters }
    const answers = createAnswers(parts)
    const lists = createLists(parts)
    const route = (
      path: string,
      answer: PrivateRoute['answer'],
      source: SourceName = 'catalog',
    ): PrivateRoute => ({ path: path.replace('{repo}', '{repo+}'), source, answer })
    const routesOf = (resource: Resource): PrivateRoute[] => {
      const { list, item, sublist, artifacts } = resource
      const source = resource.surface === 'identity' ? 'identity' : 'catalog'
      return [
        ...[list, sublist].flatMap((one) =>
          one === null ? [] : [route(one.path, (call) => lists.send(call, resource, one), source)],
        ),
        ...(item === null ? [] : [route(item, (call) => answers.send(call, resource, item))]),
        ...artifacts.flatMap(({ path, aliases }) =>
          [path, ...aliases].map((form) =>
            route(form, (call) => answers.send(call, resource, path)),
          ),
        ),
      ]
    }
    const releases = Object.values(RELEASES).map((path) =>
      route(path, (call) => answers.send(call, null, path)),
    )
    const documents: PrivateRoute = {
      path: `${DOCUMENT_PATH}{digest}`,
      guard: 'link',
      answer: (call: RouteCall) => sendDocument(tools.moment, call, call.params['digest'] ?? ''),
    }
    return [...RESOURCES.flatMap(routesOf), ...releases, documents]
  }
}
