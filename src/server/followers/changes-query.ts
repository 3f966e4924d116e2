import { MirrorError } from '../../base/errors.ts'
import { type SourceName, SOURCES } from '../../base/domain/sources.ts'
import { namedValue, onlyValue } from '../http/request-target.ts'
import { type PackageFilter, readFilter } from './filter.ts'
import { SINCE_FORMS_HERE } from './since.ts'

/** Parameters that name packages: the answer has what differs in them. */
const PACKAGES = ['ecosystem', 'purl', 'tag'] as const

/** Whether a query asks for differences, which take long to compute. */
export function asksForDifferences(query: URLSearchParams): boolean {
  return query.get('detail') === 'differences' || PACKAGES.some((name) => query.has(name))
}

/** Returns what `since` names, as it came. Throws `bad_request` where it names nothing. */
export function readNamed(query: URLSearchParams): string {
  const since = onlyValue(query, 'since')
  if (since !== null) return since
  throw new MirrorError(
    'bad_request',
    `name the snapshot that you have read, or a time: /-/changes?since=… , ${SINCE_FORMS_HERE}`,
  )
}

/** The source that the query names; null when it names none. Throws `bad_request` for an unknown one. */
export function readSource(query: URLSearchParams): SourceName | null {
  const given = onlyValue(query, 'source')
  if (given === null) return null
  const source = SOURCES.find((known) => known === given)
  if (source !== undefined) return source
  throw new MirrorError('bad_request', `source=… is none of: ${SOURCES.join(', ')}`)
}

/** What is asked about each record, and of which packages. */
interface AskedDetail {
  readonly detailed: boolean
  /** The packages that are named; null: all, or those of the tag. */
  readonly filter: PackageFilter | null
  /** A tag whose SBOM names the packages, as it came. */
  readonly tag: string | null
}

/** Reads what is asked about each record of a source. Filters ask for its differences too. Throws `bad_request`. */
export function readDetail(query: URLSearchParams, source: SourceName): AskedDetail {
  const detail = onlyValue(query, 'detail')
  if (detail !== null && detail !== 'differences' && detail !== 'names')
    throw new MirrorError('bad_request', 'detail=… is none of: names, differences')
  const detailed = asksForDifferences(query)
  if (detailed) refuseDetail(source)
  const [ecosystem, purl, tag] = PACKAGES.map((name) => namedValue(query, name))
  const filter = readFilter(ecosystem ?? null, purl ?? null)
  if (filter !== null && tag !== null)
    throw new MirrorError('bad_request', 'a tag names the packages: omit ecosystem and purl')
  return { detailed, filter, tag: tag ?? null }
}

/** Refuses differences of a source that is not the records. Throws `bad_request`. */
export function refuseDetail(source: SourceName): void {
  if (source !== 'osv')
    throw new MirrorError(
      'bad_request',
      'detail=…, ecosystem=…, purl=… and tag=… are for the records alone: source=osv',
    )
}
