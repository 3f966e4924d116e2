import { uncached } from './answers.ts'
import { CURSOR } from './components.ts'
import type { PathContract } from './openapi.ts'

const TEXT = { type: 'string' }
const NUMBER = { type: 'integer' }
const LIST = { type: 'array' }
const ANY = { type: 'object' }
const MAYBE_TEXT = { type: ['string', 'null'] }
const NEXT = { ...MAYBE_TEXT, description: 'For `after`; null on the last page.' }
const object = (properties: Readonly<Record<string, object>>) => ({
  ...{ type: 'object', required: Object.keys(properties), properties },
})

/** By what tags are judged, and how many. */
const STATE = {
  osv: ANY,
  catalog: { type: ['object', 'null'] },
  judgedAt: MAYBE_TEXT,
  counts: ANY,
}

const LIMIT = {
  ...{ name: 'limit', in: 'query' as const, description: 'Of a page.' },
  schema: { type: 'integer', minimum: 1, maximum: 1_000, default: 100 },
}

/** `/-/tags/findings`. */
export const FINDINGS_CONTRACT: PathContract = {
  get: {
    summary: 'What records say about the SBOMs of the mirrored tags',
    description: 'VEX and the list of patches are not applied (docs/guides/tags.md).',
    tags: ['Mirror'],
    parameters: [
      LIMIT,
      {
        ...{ name: 'after', in: 'query', schema: CURSOR },
        description: 'The value of `next` of the page before.',
      },
      { name: 'tag', in: 'query', description: 'The id of one.', schema: TEXT },
    ],
    responses: {
      200: uncached(
        'A page of tags.',
        object({
          ...STATE,
          tags: {
            ...LIST,
            items: object({ id: TEXT, name: TEXT, sboms: LIST, notJudgedReason: MAYBE_TEXT }),
          },
          next: NEXT,
        }),
      ),
    },
  },
}

/** `/-/tags/changes`. */
export const FINDINGS_LOG_CONTRACT: PathContract = {
  get: {
    summary: 'What changed in the findings of tags',
    tags: ['Mirror'],
    parameters: [
      LIMIT,
      { name: 'since', in: 'query', description: 'A time, such as 7d.', schema: TEXT },
      {
        ...{ name: 'after', in: 'query', schema: { ...TEXT, pattern: '^[0-9]{1,15}$' } },
        description: 'The value of `next` or `position`.',
      },
    ],
    responses: {
      200: uncached(
        'A page of changes, the oldest first.',
        object({
          ...STATE,
          complete: { type: 'boolean', description: 'False: older ones are forgotten.' },
          changes: {
            ...LIST,
            items: object({
              ...{ at: TEXT, tag: ANY, cause: TEXT, snapshot: TEXT },
              ...{ newFindings: NUMBER, goneFindings: NUMBER, newFixes: NUMBER, goneFixes: NUMBER },
              ...{ counts: ANY, changes: LIST },
            }),
          },
          ...{ next: NEXT, position: TEXT },
        }),
      ),
    },
  },
}
