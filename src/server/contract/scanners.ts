import type { BUCKET_PATHS, QUERY_PATHS } from '../http/paths.ts'
import { mirrored, mirroredFile, problems } from './answers.ts'
import { CONDITIONS, EDGE, MIRRORED, RANGES, headersOf } from './components.ts'
import { idParameter } from './feeds.ts'
import type { ComponentRef, InputParameter, PathContract, PathOperation } from './openapi.ts'
import { schemaOf } from './schema-ref.ts'

const TAGS = ['Scanners']
const FAULTS = problems('message', 400, 404, 500, 503)
const TEXT = { type: 'string' }
const ECOSYSTEM = idParameter('ecosystem', 'An ecosystem, such as Debian:12', 'PyPI')
const ID = idParameter('id', 'Id of the record', 'CVE-2026-1')

function fileContract(summary: string, type: string, parameters: readonly InputParameter[] = []): PathContract {
  const isText = type !== 'application/zip'
  const coding = isText ? (['Content-Encoding'] as const) : []
  const more = ['x-goog-hash', 'X-Mirror-Derived', ...EDGE, ...coding] as const
  return {
    get: {
      summary,
      tags: TAGS,
      parameters: [...parameters, ...RANGES],
      responses: {
        ...mirroredFile({ description: 'The file.', type, ...(isText && { schema: TEXT }), more }),
        ...FAULTS,
      },
    },
  }
}

/** The layout of osv.dev's bucket; a path without a contract here does not compile. */
export const BUCKET_CONTRACTS: Readonly<Record<(typeof BUCKET_PATHS)[number], PathContract>> = {
  '/osv/ecosystems.txt': fileContract('The names of all ecosystems', 'text/plain'),
  '/osv/modified_id.csv': fileContract('Modification date and id of every record', 'text/csv'),
  '/osv/all.zip': fileContract('All records in one zip archive', 'application/zip'),
  '/osv/{ecosystem}/all.zip': fileContract('The records of an ecosystem in one zip archive', 'application/zip', [
    ECOSYSTEM,
  ]),
  '/osv/{ecosystem}/modified_id.csv': fileContract(
    'Modification date and id of the records of an ecosystem',
    'text/csv',
    [ECOSYSTEM],
  ),
  '/osv/{ecosystem}/{id}.json': {
    get: {
      summary: 'A record of an ecosystem',
      tags: TAGS,
      parameters: [ECOSYSTEM, ID, ...CONDITIONS],
      responses: {
        ...mirrored({
          description: 'The record; see X-Mirror-Derived.',
          schema: schemaOf('OsvRecord'),
          more: ['x-goog-hash', 'X-Mirror-Derived', 'Content-Location', ...EDGE],
        }),
        ...FAULTS,
      },
    },
  },
}

function queryContract(
  summary: string,
  { asked, required }: { readonly asked: ComponentRef; readonly required: boolean },
  answered: ComponentRef,
): PathContract {
  const headers = ['Cache-Control', 'Vary', 'Content-Encoding', ...MIRRORED, 'X-Mirror-Derived'] as const
  const post: PathOperation = {
    summary,
    description: "osv.dev's query API. Queries by commit are refused (400).",
    tags: TAGS,
    requestBody: {
      description: 'At most 4 MiB.',
      required,
      content: { 'application/json': { schema: asked } },
    },
    responses: {
      200: {
        description: 'What was found.',
        headers: headersOf(...headers),
        content: { 'application/json': { schema: answered } },
      },
      ...problems('gateway', 400, 404, 408, 413, 415, 500, 503),
    },
  }
  return { post }
}

/** osv.dev's query API; a path without a contract here does not compile. */
export const QUERY_CONTRACTS: Readonly<Record<(typeof QUERY_PATHS)[number], PathContract>> = {
  '/osv/v1/query': queryContract(
    'Records about a package version',
    { asked: schemaOf('Query'), required: true },
    schemaOf('QueryAnswer'),
  ),
  '/osv/v1/querybatch': queryContract(
    'Ids of records about many package versions',
    { asked: schemaOf('QueryBatch'), required: false },
    schemaOf('QueryBatchAnswer'),
  ),
  '/osv/v1/vulns/{id}': {
    get: {
      summary: 'A record by its id',
      tags: TAGS,
      parameters: [ID, ...CONDITIONS],
      responses: {
        ...mirrored({
          description: 'The record, with derived entries.',
          schema: schemaOf('OsvRecord'),
          more: [...EDGE, 'X-Mirror-Derived'],
        }),
        ...problems('gateway', 400, 404, 500, 503),
      },
    },
  },
}

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
export const MATCH_CONTRACT: PathContract = {
  post: {
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
  },
}

const VEX_TAGS = ['VEX repository']

/** The manifest of the VEX repository. */
export const VEX_MANIFEST_CONTRACT: PathContract = {
  get: {
    summary: 'The manifest of the VEX repository',
    tags: VEX_TAGS,
    parameters: CONDITIONS,
    responses: mirrored({ description: 'The manifest.', schema: { type: 'object' } }),
  },
}

/** Its archive. */
export const VEX_ARCHIVE_CONTRACT: PathContract = {
  get: {
    summary: 'The archive of the VEX repository',
    tags: VEX_TAGS,
    parameters: RANGES,
    responses: mirroredFile({ description: 'A zip archive.', more: ['x-goog-hash'] }),
  },
}

const IMAGE_DIGEST: InputParameter = {
  name: 'digest',
  in: 'path',
  required: true,
  description: 'SHA-256.',
  schema: { pattern: '^(sha256:)?[0-9a-f]{64}$' },
}

/** The VEX of one image. */
export const IMAGE_VEX_CONTRACT: PathContract = {
  get: {
    summary: 'VEX of an image',
    tags: VEX_TAGS,
    parameters: [IMAGE_DIGEST, { name: 'name', in: 'query', description: 'More names.', schema: TEXT }, ...CONDITIONS],
    responses: mirrored({
      description: 'OpenVEX.',
      schema: { type: 'object' },
      more: ['X-Mirror-Incomplete'],
    }),
  },
}
