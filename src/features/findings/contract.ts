import { uncached } from '../../server/contract/answers.ts'
import { CURSOR } from '../../server/contract/components.ts'
import type { PathOperation } from '../../server/contract/openapi.ts'

const TEXT = { type: 'string' }
const NUMBER = { type: 'integer' }
const LIST = { type: 'array' }
const ANY = { type: 'object' }
const MAYBE_TEXT = { type: ['string', 'null'] }
const NEXT = { ...MAYBE_TEXT, description: 'For `after`; null on the last page.' }
const object = (properties: Readonly<Record<string, object>>) => ({
  type: 'object',
  required: Object.keys(properties),
  properties,
})

/** By what tags are judged, and how many. */
const STATE = {
  osv: ANY,
  judgedAt: MAYBE_TEXT,
  counts: ANY,
}

/** The shortest forms of a time; the guide has all. */
const SINCE = {
  ...TEXT,
  pattern: '^([0-9]{1,5}[mhdw]|today)$',
}

/** As that of `/-/changes`. */
const AFTER = {
  name: 'after',
  in: 'query' as const,
  schema: CURSOR,
  description: 'The value of `next` of the page before.',
}

const LIMIT = {
  name: 'limit',
  in: 'query' as const,
  description: 'Of a page.',
  schema: { type: 'integer', minimum: 1, maximum: 1_000, default: 100 },
}

const TAG = {
  name: 'tag',
  in: 'query' as const,
  description: 'The id, name or digest of one.',
  schema: { ...TEXT, minLength: 1 },
}

/** `/-/tags/findings`. */
export const FINDINGS_CONTRACT: PathOperation = {
  summary: 'Findings of the mirrored tags',
  tags: ['Mirror'],
  parameters: [LIMIT, AFTER, TAG],
  responses: {
    200: uncached(
      'A page of tags.',
      object({
        ...STATE,
        tags: {
          ...LIST,
          items: object({ id: TEXT, name: TEXT, sboms: LIST }),
        },
        next: NEXT,
      }),
    ),
  },
}

/** `/-/tags/changes`. */
export const FINDINGS_LOG_CONTRACT: PathOperation = {
  summary: 'What changed in the findings of tags',
  tags: ['Mirror'],
  parameters: [
    LIMIT,
    {
      name: 'since',
      in: 'query',
      description: 'A time, such as 7d, without `after`.',
      schema: SINCE,
    },
    AFTER,
    TAG,
  ],
  responses: {
    200: uncached(
      'A page of changes, the oldest first.',
      object({
        ...STATE,
        complete: { type: 'boolean' },
        knownSince: MAYBE_TEXT,
        changes: {
          ...LIST,
          items: object({
            at: TEXT,
            tag: ANY,
            cause: TEXT,
            snapshot: TEXT,
            newFindings: NUMBER,
            newFixable: NUMBER,
            goneFindings: NUMBER,
            goneFixable: NUMBER,
            newFixes: NUMBER,
            goneFixes: NUMBER,
            counts: ANY,
            changes: LIST,
          }),
        },
        next: NEXT,
        position: TEXT,
      }),
    ),
  },
}
