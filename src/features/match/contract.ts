import { problems } from '../../server/contract/answers.ts'
import { MIRRORED, headersOf } from '../../server/contract/components.ts'
import type { PathOperation } from '../../server/contract/openapi.ts'

const TAGS = ['Scanners']

/** What was found in an SBOM. */
const MATCH = {
  type: 'object',
  required: ['sbom', 'snapshot', 'counts', 'findings', 'suppressed', 'vex', 'patches', 'notJudged', 'gaps'],
  properties: {
    sbom: { type: 'object' },
    counts: { type: 'object' },
    snapshot: { type: 'object', required: ['id', 'asOf'] },
    findings: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'severity', 'component', 'fixed', 'patches', 'patchCount'],
      },
    },
    suppressed: {
      type: 'array',
      items: { type: 'object', required: ['id', 'severity', 'component', 'vex'] },
    },
    vex: { type: 'object', required: ['notApplied', 'documents', 'unread'] },
    patches: { type: 'object', required: ['notApplied', 'entries'] },
    notJudged: { type: 'array', items: { type: 'object', required: ['code', 'reason'] } },
  },
}

/** A list of objects; null is read as none. */
const objects = { type: ['array', 'null'], items: { type: 'object' } }

/** What an SBOM has at least; one within an envelope is described in words. */
const SBOM = {
  type: 'object',
  anyOf: [
    {
      required: ['bomFormat', 'specVersion'],
      properties: {
        bomFormat: { const: 'CycloneDX' },
        specVersion: { pattern: '^1.[2-7]$' },
        components: objects,
      },
    },
    {
      required: ['spdxVersion'],
      properties: {
        spdxVersion: { pattern: '^SPDX-2.[1-3]$' },
        packages: objects,
      },
    },
  ],
}

/** What takes an SBOM. */
export const MATCH_CONTRACT: PathOperation = {
  summary: 'Vulnerabilities of an SBOM',
  description:
    'CycloneDX 1.2 to 1.7, SPDX 2.1 to 2.3 or 3.0 in JSON, also in a DSSE envelope, unverified. With a local key, VEX is applied.',
  tags: TAGS,
  parameters: [
    {
      name: 'distro',
      in: 'query',
      description: 'Such as debian-12.',
      schema: { type: 'string', minLength: 1 },
    },
  ],
  requestBody: {
    description: 'At most 16 MiB.',
    required: true,
    content: {
      'application/json': { schema: SBOM },
      'application/vnd.cyclonedx+json': { schema: SBOM },
      'application/spdx+json': { schema: SBOM },
    },
  },
  responses: {
    200: {
      description: 'The findings.',
      headers: headersOf('Cache-Control', ...MIRRORED),
      content: { 'application/json': { schema: MATCH } },
    },
    ...problems('message', 400, 401, 404, 408, 413, 415, 429, 500, 503),
  },
  security: [{}, { bearer: [] }, { basic: [] }], // with a key, VEX is applied
}
