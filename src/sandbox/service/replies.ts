import type { Answer } from '../negotiate.ts'
import { jsonAnswer } from '../refusal.ts'
import { type Representation, jsonRepresentation } from '../representation.ts'
import type { Call } from './call.ts'
import type { Entry } from './collection.ts'
import { jsonBytes } from './json.ts'
import { type Order, takePage } from './paging.ts'
import { type ArtifactUrls, type Shape, artifactEnvelope, listEnvelope } from './shape.ts'

/** A list, sorted already, and when it last changed (unix milliseconds). */
export interface Listing<F extends object> {
  entries: readonly Entry<F>[]
  order?: Order<F> | undefined
  lastModified: number
}

/** Only the page's own items are made into JSON, however long the list is. */
export function listReply<F extends object>(
  { request }: Call,
  shape: Shape,
  { entries, order, lastModified }: Listing<F>,
  key: 'data' | 'tickets' = 'data',
): Representation {
  const page = takePage(entries, request, order)
  return jsonRepresentation(jsonBytes(listEnvelope(shape, key, page)), lastModified)
}

/** One thing, with its details. */
export function itemReply({ listed, detail, lastModified }: Entry): Representation {
  return jsonRepresentation(jsonBytes({ ...listed, ...detail }), lastModified)
}

/** An artifact answer: its URLs are new each time, so it carries no validators. */
export function artifactReply({ request }: Call, shape: Shape, named: ArtifactUrls): Answer {
  const { fault } = request
  if (fault?.kind !== 'artifactUrl') return jsonAnswer(200, artifactEnvelope(shape, named))
  const urls = named.urls.map(() => fault.url)
  return jsonAnswer(200, artifactEnvelope(shape, { ...named, urls, keyUrl: fault.url }))
}

/** 204, nothing to say. */
export function emptyReply(): Answer {
  return { status: 204, headers: {}, length: 0, body: () => [] }
}
