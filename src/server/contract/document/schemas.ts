import { ecosystemNames } from '../../../base/versions/ecosystems.ts'
import { LEADER, READINESS } from '../../../base/reports/readiness.ts'
import { RECORD_DATES } from '../../../base/reports/records.ts'
import { SOURCE_STATUS } from '../../../base/reports/sources.ts'
import { STATUS } from '../../../base/reports/status.ts'
import { DATE, INTEGER, TEXT, object, optional } from '../../../base/schema.ts'
import { purlPattern } from '../components.ts'
import type { JsonSchema } from '../openapi.ts'
import { CHANGES_ANSWER, RECORD_DIFFERENCE } from '../../followers/changes-answer.ts'
import { published } from './publish.ts'

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

/** Schemas of bodies. What the service sent is served as it came, so its shape is the service's to define. */
export const SCHEMAS = {
  ServiceJson: {
    description: 'JSON as the service gave it, apart from links to documents.',
  },
  ServiceList: {
    description: 'A page of the list in the envelope in which the service gave it, or a plain list.',
    type: ['object', 'array'],
  },
  OsvRecord: {
    type: 'object',
    description: 'An OSV record: https://ossf.github.io/osv-schema/',
  },
  Problem: published(object({ error: TEXT, message: TEXT }, { description: 'Why there is no such answer.' })),
  IdentityProblem: published(
    object(
      { error: TEXT, error_description: TEXT, status_code: INTEGER },
      { description: 'The same, in the form of the identity surface.' },
    ),
  ),
  GatewayProblem: published(
    object(
      { code: INTEGER, message: TEXT },
      { description: "The same, in the form of osv.dev's gateway; `code` is one of gRPC." },
    ),
  ),
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
  Changes: published(CHANGES_ANSWER),
  RecordDifference: published(RECORD_DIFFERENCE),
  RecordDates: published(RECORD_DATES),
  Readiness: published(READINESS),
  Leader: published(LEADER),
  SourceStatus: published(SOURCE_STATUS),
  Status: published(STATUS),
} as const satisfies Readonly<Record<string, JsonSchema>>
