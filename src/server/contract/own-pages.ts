import type { OWN } from '../http/paths.ts'
import { problems, uncached } from './answers.ts'
import { headersOf, ref } from './components.ts'
import { pageAnswer } from './people.ts'
import type { DeclaredAnswer, PathOperation, SecurityRequirement } from './openapi.ts'
import { schemaOf } from './schema-ref.ts'

const TAGS = ['Mirror']
const TEXT = { type: 'string' }

/** The public part is open; with a key it is everything. */
const KEY_OR_NONE: readonly SecurityRequirement[] = [{}, { bearer: [] }, { basic: [] }]

const OF_CONTRACT = ['ETag', 'Cache-Control', 'X-Accel-Expires', 'Vary'] as const

function reportContract(summary: string, schema: object): PathOperation {
  return {
    summary,
    tags: TAGS,
    responses: {
      200: uncached('The report.', { ...schema }),
      ...problems('message', 400, 500, 503),
    },
  }
}

const ROOT = {
  type: 'object',
  required: ['name', 'version', 'mirrored', 'own'],
  properties: {
    name: { const: 'patchmirror' },
    version: TEXT,
    mirrored: { type: 'array', items: TEXT },
    own: { type: 'array', items: TEXT },
  },
}

/** What the mirror says of itself, and documents about the program. */
export const STATUS_CONTRACTS = {
  '/': {
    summary: 'Name, version and paths; the overview as HTML',
    tags: TAGS,
    responses: {
      200: {
        ...pageAnswer('The paths, or the page.'),
        content: {
          'application/json': { schema: ROOT },
          'text/html': { schema: TEXT },
        },
      },
      401: pageAnswer('Of the page: the key is not valid.', ['WWW-Authenticate']),
      ...problems('message', 500, 503),
    },
    security: KEY_OR_NONE,
  },
  '/-/health': {
    summary: 'Whether the process answers',
    tags: TAGS,
    responses: {
      200: uncached('It does.', { type: 'object', properties: { status: { const: 'ok' } } }, ['X-Mirror-Instance']),
      ...problems('message', 500),
    },
  },
  '/-/ready': {
    summary: 'Whether every source is served and recent enough',
    tags: TAGS,
    responses: {
      200: uncached('Ready.', schemaOf('Readiness')),
      503: uncached(
        'Not ready, or the report cannot be made.',
        { anyOf: [schemaOf('Readiness'), schemaOf('Problem')] },
        ['Retry-After'],
      ),
      ...problems('message', 500),
    },
  },
  '/-/leader': {
    summary: 'Whether this mirror leads its fleet',
    description: 'A mirror without a fleet answers 200.',
    tags: TAGS,
    responses: {
      200: uncached('It leads: it syncs and publishes.', schemaOf('Leader')),
      503: uncached('Another mirror leads, or none.', { anyOf: [schemaOf('Leader'), schemaOf('Problem')] }, [
        'Retry-After',
      ]),
      ...problems('message', 500),
    },
  },
  '/-/status': reportContract('State of every part of the mirror', schemaOf('Status')),
  '/-/metrics': {
    summary: 'Metrics for Prometheus',
    tags: TAGS,
    responses: {
      200: {
        description: 'See docs/reference/metrics.md.',
        headers: headersOf('Cache-Control'),
        content: { 'text/plain': { schema: TEXT } },
      },
      ...problems('message', 400, 404, 500, 503),
    },
  },
  '/-/sbom': documentContract(
    {
      summary: 'The bill of materials of this program',
      description: 'A program that runs from its sources has none.',
    },
    'The libraries of the built program in CycloneDX 1.5.',
    { 'application/vnd.cyclonedx+json': { schema: { type: 'object' } } },
    404,
  ),
  '/-/openapi.json': documentContract({ summary: 'This document' }, 'The contract of this mirror in OpenAPI 3.1.', {
    'application/json': { schema: { type: 'object' } },
  }),
  '/-/docs': documentContract({ summary: 'This document as a page' }, 'The reference page.', {
    'text/html': { schema: TEXT },
  }),
} as const satisfies Readonly<Partial<Record<(typeof OWN)[number] | '/', PathOperation>>>

/** The contract of a document about the program; those that are pages have the header fields of pages. */
function documentContract(
  about: Pick<PathOperation, 'summary' | 'description'>,
  description: string,
  content: NonNullable<DeclaredAnswer['content']>,
  ...more: 404[]
): PathOperation {
  const page = 'text/html' in content ? pageAnswer('').headers : {}
  const headers = { ...page, ...headersOf(...OF_CONTRACT) }
  return {
    ...about,
    tags: TAGS,
    parameters: [ref('parameters', 'IfNoneMatch')],
    responses: {
      200: { description, headers: { ...headers, ...headersOf('Content-Encoding') }, content },
      304: { description: 'The client has the current content.', headers },
      ...problems('message', 400, ...more, 500),
    },
  }
}
