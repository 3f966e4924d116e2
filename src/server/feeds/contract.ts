import { ECOSYSTEMS } from '../../base/domain/resources.ts'
import { FILTERED_FEEDS, OSV_ARCHIVE, OSV_INDEX, OSV_RECORD } from '../../base/domain/feed-paths.ts'
import { FILTER_NAMES } from '../snapshot/patch-filter.ts'
import { UNFILTERED, mirrored, mirroredFile, problems } from '../contract/answers.ts'
import { CONDITIONS, EDGE, RANGES, idParameter } from '../contract/components.ts'
import type { InputParameter, PathOperation } from '../contract/openapi.ts'
import { schemaOf } from '../contract/schema-ref.ts'

const TAGS = ['Public feeds']
const FAULTS = problems('message', 400, 404, 500, 503)

const filter = (name: string, description: string, more: object = {}): InputParameter => {
  return { name, in: 'query', description, schema: { type: 'string', ...more } }
}

/** An empty value counts as none. */
const FILTERS: readonly InputParameter[] = [
  filter(FILTER_NAMES.ecosystem, 'Only this ecosystem.', { enum: [...ECOSYSTEMS, ''] }),
  filter(FILTER_NAMES.release, 'Only this release of a distribution, such as `12`.'),
  filter(FILTER_NAMES.packageName, 'Only this source package.'),
]

/** The contract of a path under /external/: of OSV, or a feed that is one document. */
export function feedContract(path: string): PathOperation {
  if (path === OSV_INDEX) return INDEX
  if (path === OSV_RECORD) return RECORD
  if (path === OSV_ARCHIVE) return ARCHIVE
  const isFiltered = FILTERED_FEEDS.has(path)
  const name = path.slice(path.lastIndexOf('/') + 1)
  return {
    summary: `The feed ${name}`,
    tags: TAGS,
    parameters: [...(isFiltered ? FILTERS : []), ...CONDITIONS],
    responses: {
      ...mirrored({
        description: isFiltered ? "The service's document, filtered." : "The service's document.",
        more: isFiltered ? ['X-Mirror-Ignored-Parameters', ...EDGE] : EDGE,
      }),
      ...FAULTS,
      ...(isFiltered && { ...problems('message', 501), ...UNFILTERED }),
    },
  }
}

const INDEX: PathOperation = {
  summary: 'The index of OSV records',
  tags: TAGS,
  parameters: CONDITIONS,
  responses: {
    ...mirrored({
      description: 'Id and date of each record.',
      more: ['X-Mirror-Incomplete', ...EDGE],
    }),
    ...FAULTS,
  },
}

const RECORD: PathOperation = {
  summary: 'An OSV record',
  tags: TAGS,
  parameters: [idParameter('id', 'Id of the record', 'ROOT-OS-DEBIAN-12-CVE-2026-1'), ...CONDITIONS],
  responses: {
    ...mirrored({
      description: "The service's bytes.",
      schema: schemaOf('OsvRecord'),
      more: ['Content-Location', ...EDGE],
    }),
    ...FAULTS,
  },
}

const ARCHIVE: PathOperation = {
  summary: 'All OSV records in one zip archive',
  description: 'Without Content-Encoding.',
  tags: TAGS,
  parameters: RANGES,
  responses: {
    ...mirroredFile({ description: 'The archive.', more: ['x-goog-hash', 'X-Mirror-Incomplete', ...EDGE] }),
    ...FAULTS,
  },
}
