import { type Slice, locate, sliceText } from '../../base/json/slices.ts'
import type { CatalogResource } from '../../base/domain/resources.ts'
import { signatureFields } from '../../base/domain/artifacts/signature.ts'
import { type CatalogAnswer, type CatalogLink, isNone } from '../../store/catalog/answers.ts'
import type { createOrderings } from '../../store/catalog/list-query.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { type Heads, type JsonContent, encode, respond, respondUnstored } from '../http/response.ts'
import { DOCUMENT_PATH } from './documents.ts'
import { type Missing, requestedPath } from './not-found.ts'
import type { Links } from '../access/signed-links.ts'
import type { Origins } from '../snapshot/served.ts'
import { type SnapshotOrigin, originOfOne } from '../http/origin.ts'
import { problemHeaders } from '../http/problems.ts'
import type { ReadCall } from '../reading/request.ts'

/** What answers are made from, on whichever thread. */
export interface ReadTools {
  readonly served: Origins
  readonly heads: Heads
  readonly links: Links
  /** Orders by fields that have no index; null: they are sorted for each page. */
  readonly orderings: Orderings | null
}

type Orderings = ReturnType<typeof createOrderings>

/** What the answers of the catalog are made from. */
export interface CatalogParts {
  readonly tools: ReadTools
  readonly missing: Missing
  /** Whether a list refuses a query parameter that it does not have. */
  readonly strictParameters: boolean
}

/** Items and artifact answers, as upstream gave them. */
export function createAnswers({ tools, missing }: CatalogParts) {
  const { served, heads, links } = tools
  return {
    /** Answers a path of a resource (null: the package catalog) whose form is `template`. */
    send(call: ReadCall, resource: CatalogResource | null, template: string): void {
      const origin = missing.origin(resource)
      if ('status' in origin) return call.refuse(origin)
      const path = requestedPath(template, call.params)
      const refused = missing.refused(path, origin)
      if (refused !== null) return call.refuse(refused)
      const answer = served.reads.catalog.readAnswer(path)
      if (answer === null) return call.refuse(missing.explain(resource, call.params, path))
      const always = answer.ownerSha.length === 0 // it belongs to no item, such as `/v1/me`
      const own = originOfOne(origin, answer, { always, reads: served.reads })
      if (isNone(answer)) return sendNone(call, answer, own)
      const [link] = answer.links
      // An answer with a body is a JSON string that contains a URL; it is rewritten as one.
      const more = signatureFields(served.reads.catalog.readSignature(path, answer))
      if (link?.at.length === 0 && answer.body === null)
        return call.sendDocument({ ...link, changed: answer.changed, more }, own.asOf)
      const { body: stored, changed } = answer
      const body = contentOfAnswer(answer) // for gzip too: inflating verifies its checksum
      const places = placesOf(body, answer.links)
      const type = answer.type === null || answer.type === undefined ? {} : { type: answer.type }
      if (places.length > 0) return sendLinked(call, { ...type, body, more }, places, links, own)
      const tag = answer.sha256.toString('hex', 0, 16)
      const gzip = (): Buffer => stored ?? body
      respond(call, { ...type, body, gzip, tag, changed, origin: own, more }, heads)
    },
  }

  /** Sends upstream's answer for something that does not exist: 404, or 204 without a body. */
  function sendNone(call: ReadCall, { status }: CatalogAnswer, origin: SnapshotOrigin): void {
    const problem = { status, error: 'not_found', message: NOTHING, origin }
    if (status !== 204) return call.refuse(problem)
    call.response.writeHead(204, problemHeaders(problem)).end()
  }

  /** An artifact answer with fresh links of the mirror's own: good for a while, so never to be kept or revalidated. */
  function sendLinked(
    call: ReadCall,
    { body: text, ...rest }: Pick<JsonContent, 'body' | 'type' | 'more'>,
    places: readonly Place[],
    { signLink, expiry }: Links,
    origin: SnapshotOrigin,
  ): void {
    const expiresAt = expiry()
    const asOf = Date.parse(origin.asOf)
    const base = call.baseUrl()
    const body = withLinks(
      text,
      places,
      ({ digest, type }) => base + signLink({ path: DOCUMENT_PATH + digest, expiresAt, asOf, type }),
    )
    const vary = 'Accept-Encoding, Authorization'
    respondUnstored(call, { ...rest, ...encode(call.requestHeaders, { body }), vary, origin })
  }
}

const NOTHING = 'the service has nothing under this path: it answered 404 when the mirror asked'

/** Throws for stored bytes that are not sound, with what to do about it, for the log. */
function contentOfAnswer({ body, size, path }: CatalogAnswer): Buffer {
  try {
    return contentOf(body ?? Buffer.alloc(0), size)
  } catch (error) {
    const advice = 'are damaged: run "patchmirror doctor --data --repair"'
    throw new Error(`the stored bytes of ${path} ${advice}`, { cause: error })
  }
}

/** The place of a link in an answer. */
type Place = Slice & { readonly link: CatalogLink }

/**
 * Returns the places of upstream's links, which the stored answer has the digest of the document in. A document that stands in
 * the answer itself has none: it is served as it came.
 */
function placesOf(text: Buffer, links: readonly CatalogLink[]): Place[] {
  return links.flatMap((link) => {
    const slice = locate(text, link.at)
    const isLink = slice !== null && sliceText(text, slice) === `"sha256:${link.digest}"`
    return isLink ? [{ ...slice, link }] : []
  })
}

/** Returns the same JSON with the given texts in place of upstream's links. */
function withLinks(text: Buffer, places: readonly Place[], urlOf: (link: CatalogLink) => string): Buffer {
  const parts: Buffer[] = []
  let from = 0
  for (const { start, end, link } of places.toSorted((one, other) => one.start - other.start)) {
    parts.push(text.subarray(from, start), Buffer.from(JSON.stringify(urlOf(link))))
    from = end
  }
  return Buffer.concat([...parts, text.subarray(from)])
}
