import { ecosystemNames } from '../../../base/versions/ecosystems.ts'
import { DATE, TEXT, object, optional } from '../../../base/schema.ts'
import { purlPattern } from '../../../server/contract/components.ts'
import { published } from '../../../server/contract/document/publish.ts'
import type { JsonSchema } from '../../../server/contract/openapi.ts'

const MAYBE_SHORT = { type: ['string', 'null'], maxLength: 1024 }
const NOT_GIVEN = { enum: ['', null] }

/** The ecosystems that a query may name: one of the OSV schema, or a vendor's, with anything behind a colon. */
function ecosystemPattern(): string {
  const { names, vendors } = ecosystemNames()
  return `^$|^((${names.join('|')})|(${vendors.join('|')}))(:.*)?$`
}

const asked = (description: string, required: string, own: object, rest: object = {}) => ({
  description,
  properties: {
    package: { type: 'object', required: required.split(' '), properties: own },
    ...rest,
  },
})
const BY_NAME = asked('By name and ecosystem.', 'name', {
  name: { type: 'string', minLength: 1, maxLength: 1024 },
  ecosystem: { type: ['string', 'null'], pattern: ecosystemPattern(), maxLength: 1024 },
  purl: NOT_GIVEN,
})
const purl = (pattern: string): object => ({
  purl: { type: 'string', format: 'purl', pattern, maxLength: 1024 },
  name: NOT_GIVEN,
  ecosystem: NOT_GIVEN,
})
const BY_PURL = asked('By a purl without a version.', 'purl', purl(purlPattern('')))
const BY_PURL_OF_A_VERSION = asked(
  'By a purl with a version; then the query has none of its own.',
  'purl',
  purl(purlPattern('@[A-Za-z0-9._~+-]+')),
  { version: NOT_GIVEN },
)

/** Schemas of the query API's bodies. */
export const QUERY_SCHEMAS = {
  Query: {
    description: 'A version and a package, by name and ecosystem or by purl.',
    type: 'object',
    required: ['package'],
    properties: {
      version: MAYBE_SHORT,
      page_token: { ...MAYBE_SHORT, format: 'cursor' },
      commit: NOT_GIVEN,
    },
    oneOf: [BY_NAME, BY_PURL, BY_PURL_OF_A_VERSION],
  },
  QueryBatch: {
    type: 'object',
    properties: {
      queries: { type: 'array', maxItems: 1000, items: { $ref: '#/components/schemas/Query' } },
    },
  },
  QueryAnswer: {
    type: 'object',
    properties: {
      vulns: { type: 'array', items: { $ref: '#/components/schemas/OsvRecord' } },
      next_page_token: TEXT,
    },
  },
  QueryBatchAnswer: {
    type: 'object',
    properties: {
      results: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            vulns: { type: 'array', items: published(object({ id: TEXT, modified: optional(DATE) })) },
            next_page_token: TEXT,
          },
        },
      },
    },
  },
} as const satisfies Readonly<Record<string, JsonSchema>>
