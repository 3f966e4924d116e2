import { LEADER, READINESS } from '../../../base/reports/readiness.ts'
import { RECORD_DATES } from '../../../base/reports/records.ts'
import { SOURCE_STATUS } from '../../../base/reports/sources.ts'
import { STATUS } from '../../../base/reports/status.ts'
import { INTEGER, TEXT, object } from '../../../base/schema.ts'
import type { JsonSchema } from '../openapi.ts'
import { CHANGES_ANSWER, RECORD_DIFFERENCE } from '../../followers/changes-answer.ts'
import { published } from './publish.ts'

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
  Changes: published(CHANGES_ANSWER),
  RecordDifference: published(RECORD_DIFFERENCE),
  RecordDates: published(RECORD_DATES),
  Readiness: published(READINESS),
  Leader: published(LEADER),
  SourceStatus: published(SOURCE_STATUS),
  Status: published(STATUS),
} as const satisfies Readonly<Record<string, JsonSchema>>
