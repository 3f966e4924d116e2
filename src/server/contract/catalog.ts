import type { CatalogResource, Facet, ListPath } from '../../base/domain/resources.ts'
import { mirrored, problems } from './answers.ts'
import { CONDITIONS, CURSOR, MIRRORED, RANGES, headersOf, ref } from './components.ts'
import { idParameter } from './feeds.ts'
import type { DeclaredAnswer, DeclaredAnswers, InputParameter, PathOperation } from './openapi.ts'
import { schemaOf } from './schema-ref.ts'

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
export function listContract(resource: CatalogResource, list: ListPath): PathOperation {
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
export function itemContract(resource: CatalogResource | null, path: string): PathOperation {
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
export function artifactContract(resource: CatalogResource | null, path: string): PathOperation {
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
export const DOCUMENT_CONTRACT: PathOperation = {
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
