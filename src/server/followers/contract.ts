import { SOURCES } from '../../base/domain/sources.ts'
import { problems, uncached } from '../contract/answers.ts'
import { CURSOR, PURL, headersOf } from '../contract/components.ts'
import type { InputParameter, PathContract, SecurityRequirement } from '../contract/openapi.ts'
import { schemaOf } from '../contract/schema-ref.ts'

const TAGS = ['Mirror']
const TEXT = { type: 'string' }

/** The public part is open; with a key it is everything. */
const KEY_OR_NONE: readonly SecurityRequirement[] = [{}, { bearer: [] }, { basic: [] }]

const SOURCE: InputParameter = {
  name: 'source',
  in: 'query',
  description: 'Only this source.',
  schema: { type: 'string', enum: [...SOURCES, ''] },
}

const asked = (name: string, description: string, schema: InputParameter['schema'] = TEXT): InputParameter => ({
  name,
  in: 'query',
  description,
  schema,
})

const NOT_EMPTY = { type: 'string', minLength: 1 }

/** The paths for those who follow the mirror. */
export const FOLLOWER_CONTRACTS = {
  '/-/changes': {
    get: {
      summary: 'What changed since a snapshot',
      description: 'The public sources are open; catalog and identity take a key, and so does `tag`.',
      tags: TAGS,
      parameters: [
        {
          name: 'since',
          in: 'query',
          required: true,
          description: 'A snapshot or its number, or a time in UTC: 2026-01-31, with a time, yesterday, monday, 7d.',
          schema: NOT_EMPTY,
        },
        SOURCE,
        asked('detail', 'With `differences`: what changed in each record.', {
          enum: ['names', 'differences'],
          default: 'names',
        }),
        asked('ecosystem', 'Records about packages of this ecosystem alone, with what changed in them.', NOT_EMPTY),
        asked('purl', 'Records about this package alone, whatever its version.', PURL),
        asked('tag', 'Records about packages in the SBOM of this tag alone.', NOT_EMPTY),
        asked('limit', 'Names on a page.', { type: 'integer', minimum: 1, maximum: 10_000, default: 1_000 }),
        asked('after', 'The value of `next` of the page before.', CURSOR),
      ],
      responses: {
        200: uncached('A page of changes.', schemaOf('Changes')),
        ...problems('message', 400, 401, 404, 429, 500, 503),
      },
      security: KEY_OR_NONE,
    },
  },
  '/-/events': {
    get: {
      summary: 'A stream of published snapshots and received webhooks',
      description: 'Server-sent events. Without a key public snapshots alone.',
      tags: TAGS,
      parameters: [
        SOURCE,
        {
          name: 'Last-Event-ID',
          in: 'header',
          schema: TEXT,
          description: 'The stream continues behind this event.',
        },
      ],
      responses: {
        200: {
          description: 'Events `snapshot`, `webhook`, `findings`, `reset`; a comment every 15 seconds.',
          headers: headersOf('Cache-Control', 'X-Accel-Buffering'),
          content: { 'text/event-stream': { schema: TEXT } },
        },
        ...problems('message', 400, 401, 429, 500, 503),
      },
      security: KEY_OR_NONE,
    },
  },
  '/-/records/{id}': {
    get: {
      summary: 'Since when a record is known here',
      description: 'Also of a removed record; with a key also its tags.',
      tags: TAGS,
      parameters: [
        {
          name: 'id',
          in: 'path',
          required: true,
          description: 'The id of a record.',
          schema: TEXT,
        },
      ],
      responses: {
        200: uncached('The dates.', schemaOf('RecordDates')),
        ...problems('message', 400, 401, 404, 429, 500, 503),
      },
      security: KEY_OR_NONE,
    },
  },
} as const satisfies Readonly<Record<string, PathContract>>
