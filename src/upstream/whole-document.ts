import { MirrorError } from '../base/errors.ts'
import { type ListSign, describeSign, saysMore, signsOfHeaders } from '../base/json/list-signs.ts'
import { type Meta, warningOf } from './http/response.ts'
import { nextLink } from './lists/page-key.ts'

/** Headers that speak of more of the document itself; others, such as counts of attempts, may be of anything. */
const OF_MORE = /next|more|truncated|partial|incomplete/
const OF_TOTAL = /total|content-range/

/**
 * Throws `upstream_shape` where the headers of a document that was fetched as the whole say that it is one page of several, or old.
 * `entries`: the number of entries in it.
 */
export function refusePaged(path: string, { link, headers }: Pick<Meta, 'link' | 'headers'>, entries: number): void {
  const next = nextLink(link)
  const said = next === null ? signOfMore(headers, entries) : `the header link leads to ${next}`
  const warning = said === null ? warningOf(headers) : null
  if (warning !== null) throw new MirrorError('upstream_shape', `${path}: it may not be whole: ${warning}`)
  if (said === null) return
  const message = `${path}: it is one page of several, and is fetched as one document: ${said.slice(0, 200)}`
  throw new MirrorError('upstream_shape', message)
}

function signOfMore(headers: Meta['headers'], entries: number): string | null {
  const read = { items: entries, shown: entries, pages: 1 }
  const found = signsOfHeaders(headers, false).find((sign) => isOfDocument(sign) && saysMore(sign, read, false))
  return found === undefined ? null : describeSign(found)
}

function isOfDocument({ name, kind }: ListSign): boolean {
  return kind === 'items' || kind === 'pages' ? OF_TOTAL.test(name) : OF_MORE.test(name)
}
