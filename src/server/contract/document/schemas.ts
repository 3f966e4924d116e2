import { ecosystemNames } from '../../../base/versions/ecosystems.ts'
import { SOURCE_STATUS } from '../../../base/reports/sources.ts'
import { STATUS } from '../../../base/reports/status.ts'
import { purlPattern } from '../components.ts'
import type { JsonSchema } from '../openapi.ts'
import { RECORD_DOUBTS, RECORD_DIFFERENCE, object } from '../report-schemas.ts'
import { published } from './publish.ts'

const TEXT = { type: 'string' }
const DATE_TIME = { type: 'string', format: 'date-time' }
const NUMBER = { type: 'integer' }
const MAYBE_TEXT = { type: ['string', 'null'] }

const MAYBE_SHORT = { type: ['string', 'null'], maxLength: 1024 }
const MAYBE_DATE = { type: ['string', 'null'], format: 'date-time' }
const NOTED = object('A date; not exact: at the latest then.', { at: MAYBE_DATE, exact: { type: 'boolean' } }, [
  'at',
  'exact',
])
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
  Problem: object('Why there is no such answer.', { error: TEXT, message: TEXT }, ['error', 'message']),
  IdentityProblem: object(
    'The same, in the form of the identity surface.',
    { error: TEXT, error_description: TEXT, status_code: NUMBER },
    ['error', 'error_description', 'status_code'],
  ),
  GatewayProblem: object(
    "The same, in the form of osv.dev's gateway; `code` is one of gRPC.",
    { code: NUMBER, message: TEXT },
    ['code', 'message'],
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
            vulns: { type: 'array', items: object('', { id: TEXT, modified: DATE_TIME }, ['id']) },
            next_page_token: TEXT,
          },
        },
      },
    },
  },
  Changes: object(
    'What changed between two snapshots.',
    {
      source: TEXT,
      from: TEXT,
      to: TEXT,
      complete: { type: 'boolean', description: 'False: everything may have changed.' },
      changes: {
        type: 'array',
        items: object(
          'A record by its id, anything else by its path.',
          {
            source: TEXT,
            id: TEXT,
            path: TEXT,
            change: { enum: ['added', 'changed', 'removed'] },
            snapshot: TEXT,
            differences: {
              type: ['array', 'null'],
              description: 'By `kind`; null: not known, as `words` say.',
              items: { $ref: '#/components/schemas/RecordDifference' },
            },
            words: { type: 'array', items: TEXT },
            doubts: RECORD_DOUBTS,
          },
          ['source', 'change', 'snapshot'],
        ),
      },
      next: { type: ['string', 'null'], description: 'For `after`; null on the last page.' },
      since: { ...TEXT, description: 'The time that `since` named, in UTC.' },
      knownSince: MAYBE_TEXT,
      namedSince: TEXT,
      counts: {
        type: 'object',
      },
      notJudged: {
        type: 'integer',
        description: 'Records that may or may not match the filter.',
      },
      packages: { type: 'object' },
      partial: { type: 'boolean' },
      missing: { type: ['integer', 'null'] },
    },
    ['source', 'from', 'to', 'complete', 'changes', 'next', 'partial', 'missing'],
  ),
  RecordDifference: RECORD_DIFFERENCE,
  RecordDates: object(
    'Since when a record is known: publications of snapshots.',
    {
      id: TEXT,
      state: { enum: ['present', 'removed'] },
      firstSeen: NOTED,
      fixSeen: { ...NOTED, type: ['object', 'null'], description: 'Null: it never named a fix.' },
      changed: NOTED,
      removedAt: MAYBE_DATE,
      returnedAt: MAYBE_DATE,
      upstream: {
        type: ['object', 'null'],
        description: 'The dates in the record; null: removed.',
        properties: { published: MAYBE_TEXT, modified: MAYBE_TEXT, withdrawn: MAYBE_TEXT },
      },
      asOf: MAYBE_DATE,
      stale: MAYBE_TEXT,
      tags: { type: 'object' },
    },
    ['id', 'state', 'firstSeen', 'fixSeen', 'changed', 'removedAt', 'returnedAt', 'upstream', 'asOf', 'stale', 'tags'],
  ),
  Readiness: object(
    'Whether every source is served and recent, and the data folder writable.',
    {
      ready: { type: 'boolean' },
      sources: {
        type: 'array',
        items: object(
          '',
          {
            name: TEXT,
            ready: { type: 'boolean' },
            reason: TEXT,
          },
          ['name', 'ready', 'reason'],
        ),
      },
      storage: { type: 'object' },
      views: { type: 'object' },
      fleet: { type: 'object', description: 'In a fleet alone.' },
    },
    ['ready', 'sources', 'storage'],
  ),
  Leader: object(
    'The mirror that leads a fleet; null: unknown.',
    {
      leader: { type: 'boolean', description: 'Whether it is the mirror that answers.' },
      epoch: { type: ['integer', 'null'] },
      name: MAYBE_TEXT,
      url: MAYBE_TEXT,
    },
    ['leader', 'epoch', 'name', 'url'],
  ),
  SourceStatus: published(SOURCE_STATUS),
  Status: published(STATUS),
} as const satisfies Readonly<Record<string, JsonSchema>>
