import type { Config } from '../../config/schema.ts'
import {
  type CatalogResource,
  type Facet,
  IDENTITY_VERSIONS,
  type ListPath,
  RELEASES,
  RESOURCES,
  atVersion,
  identityVersion,
} from '../../base/domain/resources.ts'
import { type ReadTools, createAnswers } from './answers.ts'
import { createLists } from './lists.ts'
import { createMissing } from './not-found.ts'
import { DOCUMENT_PATH, sendDocument } from './documents.ts'
import { addPrivateRoutes } from '../access/private-routes.ts'
import type { ServerPlugin, ServerTools } from '../plugin.ts'
import { readLinkTerms } from '../access/signed-links.ts'
import { askingOf } from '../reading/asking.ts'
import type { ReadRequest, ReadRoute } from '../reading/request.ts'
import type { PrivateRoute, RouteCall } from '../access/private-route.ts'
import { mirrored, problems } from '../contract/answers.ts'
import { CONDITIONS, CURSOR, MIRRORED, RANGES, headersOf, idParameter, ref } from '../contract/components.ts'
import type { DeclaredAnswer, DeclaredAnswers, InputParameter, PathOperation } from '../contract/openapi.ts'
import { schemaOf } from '../contract/schema-ref.ts'

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

/** Examples of values in paths. */
const EXAMPLES: Readonly<Record<string, string>> = {
  id: '1',
  repo: 'library/nginx',
  ecosystem: 'debian',
  name: 'openssl',
  version: '3.0.11',
  arch: 'amd64',
}

const MEANINGS: Readonly<Record<string, string>> = {
  repo: 'The repository of an image; its slashes may stay as they are',
  name: 'The name of a package; its slashes may stay as they are',
}

/** The parameters of a path such as `/v1/tags/{id}/sbom`. */
function pathParameters(path: string): InputParameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) =>
    idParameter(name, MEANINGS[name] ?? `The ${name}`, EXAMPLES[name] ?? '1'),
  )
}

function tagsOf(resource: CatalogResource | null): string[] {
  if (resource === null) return ['Package catalog']
  return [resource.surface === 'identity' ? 'Identity' : 'Catalog']
}

/** A filter of a list. An empty value counts as none. */
function facetParameter({ param, values, many = false }: Facet): InputParameter[] {
  if (param === null) return []
  const one = values === undefined ? { type: 'string' } : { type: 'string', enum: [...values, ''] }
  const common = { name: param, in: 'query' as const }
  if (!many)
    return [
      {
        ...common,
        description: 'Only items with this value; an empty one filters nothing.',
        schema: one,
      },
    ]
  const description = 'Only items with one of these values, separated by commas; an empty one filters nothing.'
  return [
    {
      ...common,
      description,
      style: 'form',
      explode: false,
      schema: { type: 'array', items: one },
    },
  ]
}

/** The parameters of every list; the names of the cursor are those of the list's own envelope. */
const PAGING: readonly InputParameter[] = [
  {
    name: 'limit',
    in: 'query',
    description: 'Items on a page.',
    schema: { type: 'integer', minimum: 1, maximum: 1000 },
  },
  {
    name: 'after',
    in: 'query',
    description: 'The cursor that the page before names.',
    schema: CURSOR,
  },
  {
    name: 'order',
    in: 'query',
    example: 'created_at:desc',
    description: "A field of the items and a direction; else the service's order. 501 where no item has the field.",
    schema: { type: 'string', pattern: '^([A-Za-z_][A-Za-z0-9_-]{0,63}:(asc|desc))?$' },
  },
]

/** The contract of a list. */
function listContract(resource: CatalogResource, list: ListPath): PathOperation {
  const isSublist = list === resource.sublist
  return {
    summary: isSublist ? `The tags of one of the ${resource.name}` : `The list of ${resource.name}`,
    tags: tagsOf(resource),
    parameters: [...pathParameters(list.path), ...list.facets.flatMap(facetParameter), ...PAGING, ...CONDITIONS],
    responses: {
      ...mirrored({
        description: 'A page of the list.',
        schema: schemaOf('ServiceList'),
        more: ['Link', 'X-Mirror-Ignored-Parameters', 'X-Mirror-Incomplete'],
      }),
      ...problems(resource.surface === 'identity' ? 'identity' : 'message', 403, 501),
    },
  }
}

/** 204 as the service answered it: there is no such thing. */
const NOTHING: DeclaredAnswers = {
  204: {
    description: 'The service answered 204: it has none.',
    headers: headersOf('Cache-Control', ...MIRRORED),
  },
}

/** The contract of one item, of a single document such as `/v1/me`, or of a part of the package catalog. */
function itemContract(resource: CatalogResource | null, path: string): PathOperation {
  const name = path.replace(/\/$/, '').split('/').at(-1) ?? ''
  const what = resource === null ? `${name} of a package` : `One of the ${resource.name}`
  return {
    summary: path.includes('{') ? what : `The ${resource?.name ?? name}`,
    tags: tagsOf(resource),
    parameters: [...pathParameters(path), ...CONDITIONS],
    responses: {
      ...mirrored({ description: 'As the service gave it.' }),
      ...NOTHING,
      ...problems('message', 403),
    },
  }
}

/** The headers of a document, whole or in part. */
const OF_DOCUMENT = headersOf(
  ...(['Cache-Control', 'Vary', 'Accept-Ranges', ...MIRRORED] as const),
  ...(['X-Content-Type-Options', 'Content-Security-Policy', 'Content-Encoding'] as const),
)
const ANY_TYPE = { '*/*': { schema: {} } }
const PART: DeclaredAnswer = {
  description: 'The part that Range asks for.',
  headers: { ...OF_DOCUMENT, ...headersOf('ETag', 'Last-Modified', 'Content-Range') },
  content: ANY_TYPE,
}
const UNCHANGED: DeclaredAnswer = {
  description: 'The client has the current content.',
  headers: { ...OF_DOCUMENT, ...headersOf('ETag', 'Last-Modified') },
}

/** The contract of an artifact: JSON with links to documents, or the document itself, as the service has it. */
function artifactContract(resource: CatalogResource | null, path: string): PathOperation {
  const name = path.split('/').at(resource === null ? -2 : -1) ?? ''
  return {
    summary: `${name.toUpperCase()} of one of the ${resource?.name ?? 'packages'}`,
    description: 'JSON with links that open for 15 minutes, or the document.',
    tags: tagsOf(resource),
    parameters: [...pathParameters(path), ...RANGES],
    responses: {
      200: {
        description: 'As the service gave it.',
        headers: {
          ...OF_DOCUMENT,
          ...headersOf('X-Mirror-Signature'),
          ETag: ref('headers', 'ETagOfDocument'),
          'Last-Modified': ref('headers', 'ChangedOfDocument'),
        },
        content: { 'application/json': { schema: schemaOf('ServiceJson') }, ...ANY_TYPE },
      },
      206: PART,
      304: UNCHANGED,
      ...NOTHING,
      ...problems('message', 403, 412, 416),
    },
  }
}

/** The contract of the documents behind signed links. */
const DOCUMENT_CONTRACT: PathOperation = {
  summary: 'A stored document, by a signed link',
  tags: ['Catalog'],
  parameters: [
    idParameter('digest', 'SHA-256 of the document, hex', '0'.repeat(64)),
    {
      name: 'expires',
      in: 'query',
      required: true,
      description: 'Part of the link.',
      schema: { type: 'integer', minimum: 0 },
    },
    { name: 'as-of', in: 'query', description: 'Part of the link.', schema: { type: 'integer' } },
    { name: 'type', in: 'query', description: 'Part of the link.', schema: { type: 'string' } },
    ...RANGES,
  ],
  responses: {
    200: { ...PART, description: 'The document.', headers: { ...UNCHANGED.headers } },
    206: PART,
    304: UNCHANGED,
    ...problems('message', 403, 404, 412, 416, 500, 503),
  },
}
