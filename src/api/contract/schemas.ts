import { ref } from './components.ts'
import type { ComponentRef, JsonSchema } from './openapi.ts'

const TEXT = { type: 'string' }
const DATE_TIME = { type: 'string', format: 'date-time' }
const object = (description: string, properties: object, required: readonly string[]) => ({
  type: 'object',
  description,
  required,
  properties,
})
const NUMBER = { type: 'integer' }
const MAYBE_TEXT = { type: ['string', 'null'] }

/** Schemas of bodies. What the service sent is served as it came, so its shape is the service's to define. */
export const SCHEMAS = {
  ServiceJson: {
    description: 'JSON as the service gave it, byte for byte where it has no links to documents.',
  },
  ServiceList: {
    description:
      'A page of the list in the envelope in which the service gave it, or a plain list.',
    type: ['object', 'array'],
  },
  OsvRecord: {
    type: 'object',
    description: 'An OSV record: https://ossf.github.io/osv-schema/',
  },
  Problem: object('Why there is no such answer.', { error: TEXT, message: TEXT }, [
    'error',
    'message',
  ]),
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
    type: 'object',
    description:
      'A package, by name and ecosystem or by purl, and a version; unknown members are ignored.',
    properties: {
      version: MAYBE_TEXT,
      page_token: MAYBE_TEXT,
      package: {
        type: 'object',
        properties: { name: MAYBE_TEXT, ecosystem: MAYBE_TEXT, purl: MAYBE_TEXT },
      },
    },
    required: ['package'],
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
          },
          ['source', 'change', 'snapshot'],
        ),
      },
      next: { type: ['string', 'null'], description: 'For `after`; null on the last page.' },
    },
    ['source', 'from', 'to', 'complete', 'changes', 'next'],
  ),
  Readiness: object(
    'Whether every source is served and recent enough, and the data folder can be written to.',
    {
      ready: { type: 'boolean' },
      sources: {
        type: 'array',
        items: object('', { name: TEXT, ready: { type: 'boolean' }, reason: TEXT }, [
          'name',
          'ready',
          'reason',
        ]),
      },
      storage: { type: 'object' },
    },
    ['ready', 'sources', 'storage'],
  ),
  Status: object(
    'State of sources, storage, relay, bundles, webhooks and views (docs/guides/monitoring.md).',
    {
      version: TEXT,
      instance: MAYBE_TEXT,
      uptimeSeconds: { type: ['integer', 'null'] },
      sources: {
        type: 'array',
        items: { type: 'object', required: ['name', 'state', 'snapshot', 'asOf'] },
      },
      storage: { type: 'object' },
      relay: { type: 'array' },
      bundle: { type: ['object', 'null'] },
    },
    ['version', 'instance', 'uptimeSeconds', 'sources', 'storage', 'relay', 'bundle'],
  ),
} as const satisfies Readonly<Record<string, JsonSchema>>

/** Returns a reference to a schema. */
export function schemaOf(name: keyof typeof SCHEMAS): ComponentRef {
  return ref('schemas', name)
}
