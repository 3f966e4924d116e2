import { problems } from './answers.ts'
import { type HeaderName, headersOf } from './components.ts'
import type { DeclaredAnswer, PathOperation, SecurityRequirement } from './openapi.ts'

const TAGS = ['Pages']
const TEXT = { type: 'string' }

/** Header fields of every page for people. */
const PAGE_HEADERS = [
  ...(['Cache-Control', 'Vary', 'Content-Security-Policy', 'X-Content-Type-Options'] as const),
  ...(['Referrer-Policy', 'Cross-Origin-Opener-Policy', 'Cross-Origin-Resource-Policy'] as const),
] as const

/** An answer that is a page. */
export function pageAnswer(description: string, more: readonly HeaderName[] = []): DeclaredAnswer {
  const headers = headersOf(...PAGE_HEADERS, ...more)
  return { description, headers, content: { 'text/html': { schema: TEXT } } }
}

const KEY: readonly SecurityRequirement[] = [{ bearer: [] }, { basic: [] }]

/** A page for people, as the contract names it. */
export interface PeoplePage {
  readonly path: string
  /** Its name in the navigation; null where it has none. */
  readonly label: string | null
  /** `key`: only with a local key. `open`: shows more to clients with one. */
  readonly access: 'open' | 'key'
  /** Media type of what it is. */
  readonly type: string
  /** The parameters of its query, each with what it is. */
  readonly parameters: Readonly<Record<string, string>>
}

/** The contract of a page for people. What is wrong with a request is said by a page too. */
export function pageContract({ path, label, access, parameters, type }: PeoplePage): PathOperation {
  return {
    summary: `The page ${label ?? path.split('/').at(-1) ?? ''}`,
    description: 'For people; parameters as in its forms and links.',
    tags: TAGS,
    parameters: Object.entries(parameters).map(([name, description]) => ({
      name,
      in: 'query',
      required: false,
      description,
      schema: { ...TEXT, maxLength: 1000 },
    })),
    responses: {
      200: { ...pageAnswer('The page.'), content: { [type]: { schema: TEXT } } },
      400: pageAnswer('A parameter is not valid.'),
      401: pageAnswer('The page takes a local key, or the key is not valid.', ['WWW-Authenticate']),
      404: pageAnswer('There is nothing under this id.'),
      429: pageAnswer('Too many wrong keys from this client.', [
        'Retry-After',
        'X-RateLimit-Limit',
        'X-RateLimit-Remaining',
      ]),
      500: { ...pageAnswer('The page cannot be made.'), content: ANY_FORM },
      503: {
        ...pageAnswer('Not mirrored yet, or too many pages are asked for.', ['Retry-After']),
        content: ANY_FORM,
      },
    },
    security: access === 'key' ? KEY : [{}, ...KEY],
  }
}

const ANY_FORM = {
  'text/html': { schema: TEXT },
  'application/json': { schema: { $ref: '#/components/schemas/Problem' } },
}

/** The files that pages refer to; their names contain the digest of their content. */
export const PAGE_FILE_CONTRACT: PathOperation = {
  summary: 'The stylesheet and the icon of the pages',
  tags: TAGS,
  parameters: [
    {
      name: 'file',
      in: 'path',
      required: true,
      description: 'As a page names it.',
      schema: { ...TEXT, minLength: 1 },
    },
  ],
  responses: {
    200: {
      description: 'The file; it never changes.',
      headers: headersOf(...PAGE_HEADERS),
      content: { 'text/css': { schema: TEXT }, 'image/svg+xml': { schema: TEXT } },
    },
    404: pageAnswer('There is no such page or file.'),
    401: pageAnswer('The key is not valid.', ['WWW-Authenticate']),
    ...problems('message', 500, 503),
  },
}
