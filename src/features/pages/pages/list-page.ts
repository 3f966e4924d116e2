import { type ListPage, parseListPage } from '../../lookup/reads/list-page.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { PageCall } from '../page.ts'

/** Items on a page. */
const PAGE = 50

/**
 * Reads a page of a list as the API gives it to programs, so filters and cursors mean the same here. Throws `not_found` or `not_ready` with the API's reason.
 */
export function readListPage(
  { readApi, reads }: PageCall,
  path: string,
  wanted: URLSearchParams,
  after: string,
): ListPage {
  const query = new URLSearchParams(wanted)
  query.set('limit', String(PAGE))
  if (after !== '') query.set('after', after)
  const reply = readApi(path, { query })
  throwProblem(reply)
  return parseListPage(reads, path, reply)
}

function throwProblem(reply: ReturnType<PageCall['readApi']>): void {
  if (!('problem' in reply)) return
  const { status, message } = reply.problem
  throw new MirrorError(status === 404 ? 'not_found' : 'not_ready', message)
}

/** Throws as a list of the API does that is not mirrored, or too old to be served. */
export function requireList({ readApi }: PageCall, path: string): void {
  throwProblem(readApi(path, { query: new URLSearchParams({ limit: '1' }) }))
}
