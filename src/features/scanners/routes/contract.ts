import type { QUERY_SCHEMAS } from './query-schemas.ts'
import { mirrored, mirroredFile, problems } from '../../../server/contract/answers.ts'
import { CONDITIONS, EDGE, MIRRORED, RANGES, headersOf, idParameter, ref } from '../../../server/contract/components.ts'
import type { ComponentRef, InputParameter, PathOperation } from '../../../server/contract/openapi.ts'
import { schemaOf } from '../../../server/contract/schema-ref.ts'

const TAGS = ['Scanners']
const FAULTS = problems('message', 400, 404, 500, 503)
const TEXT = { type: 'string' }
const ECOSYSTEM = idParameter('ecosystem', 'An ecosystem, such as Debian:12', 'PyPI')
const ID = idParameter('id', 'Id of the record', 'CVE-2026-1')

function fileContract(summary: string, type: string, parameters: readonly InputParameter[] = []): PathOperation {
  const isText = type !== 'application/zip'
  const coding = isText ? (['Content-Encoding'] as const) : []
  const more = ['x-goog-hash', 'X-Mirror-Derived', 'X-Mirror-Incomplete', ...EDGE, ...coding] as const
  return {
    summary,
    tags: TAGS,
    parameters: [...parameters, ...RANGES],
    responses: {
      ...mirroredFile({ description: 'The file.', type, ...(isText && { schema: TEXT }), more }),
      ...FAULTS,
    },
  }
}

/** The paths of osv.dev's bucket: of all ecosystems, and of each. */
export const BUCKET_CONTRACTS: Readonly<Record<string, PathOperation>> = {
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
}

function queryBody(name: keyof typeof QUERY_SCHEMAS): ComponentRef {
  return ref('schemas', name)
}

function queryContract(
  summary: string,
  { asked, required }: { readonly asked: ComponentRef; readonly required: boolean },
  answered: ComponentRef,
): PathOperation {
  const headers = [
    'Cache-Control',
    'Vary',
    'Content-Encoding',
    ...MIRRORED,
    'X-Mirror-Derived',
    'X-Mirror-Incomplete',
  ] as const
  return {
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
}

/** The paths of osv.dev's query API. */
export const QUERY_CONTRACTS: Readonly<Record<string, PathOperation>> = {
  '/osv/v1/query': queryContract(
    'Records about a package version',
    { asked: queryBody('Query'), required: true },
    queryBody('QueryAnswer'),
  ),
  '/osv/v1/querybatch': queryContract(
    'Ids of records about many package versions',
    { asked: queryBody('QueryBatch'), required: false },
    queryBody('QueryBatchAnswer'),
  ),
  '/osv/v1/vulns/{id}': {
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
}

const VEX_TAGS = ['VEX repository']

/** The manifest of the VEX repository. */
export const VEX_MANIFEST_CONTRACT: PathOperation = {
  summary: 'The manifest of the VEX repository',
  tags: VEX_TAGS,
  parameters: CONDITIONS,
  responses: mirrored({ description: 'The manifest.', schema: { type: 'object' } }),
}

/** Its archive. */
export const VEX_ARCHIVE_CONTRACT: PathOperation = {
  summary: 'The archive of the VEX repository',
  tags: VEX_TAGS,
  parameters: RANGES,
  responses: mirroredFile({ description: 'A zip archive.', more: ['x-goog-hash'] }),
}

const IMAGE_DIGEST: InputParameter = {
  name: 'digest',
  in: 'path',
  required: true,
  description: 'SHA-256.',
  schema: { pattern: '^(sha256:)?[0-9a-f]{64}$' },
}

/** The VEX of one image. */
export const IMAGE_VEX_CONTRACT: PathOperation = {
  summary: 'VEX of an image',
  tags: VEX_TAGS,
  parameters: [IMAGE_DIGEST, { name: 'name', in: 'query', description: 'More names.', schema: TEXT }, ...CONDITIONS],
  responses: mirrored({
    description: 'OpenVEX.',
    schema: { type: 'object' },
    more: ['X-Mirror-Incomplete'],
  }),
}
