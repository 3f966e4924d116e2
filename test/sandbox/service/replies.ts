import { type NegotiatedAnswer, jsonAnswer } from '../http/negotiate.ts'
import { type Representation, jsonRepresentation } from '../feed/representation.ts'
import type { Call } from './request.ts'
import type { Entry } from './data/collection.ts'
import { type Order, takePage } from './paging.ts'
import { UNFINISHED_ANSWERS, linkedBody } from './shapes/around.ts'
import { type ArtifactUrls, artifactBody } from './shapes/artifact.ts'
import { enveloped } from './shapes/list.ts'
import { type Noun, worded } from './shapes/record.ts'
import type { ArtifactForm, ListForm, Shape } from './shapes/shape.ts'

/** A list, sorted already, and when it last changed (unix milliseconds). */
interface Listing<F extends object> {
  noun: Noun
  entries: readonly Entry<F>[]
  order?: Order<F> | undefined
  lastModified: number
}

/** Only the page's own items are made into JSON, however long the list is. */
export function listReply<F extends object>(
  { request }: Call,
  { lists, records }: Shape,
  { noun, entries, order, lastModified }: Listing<F>,
  form: ListForm = lists,
): Representation {
  const page = takePage(entries, request, form, order)
  const items = page.entries.map(({ listed, detail }) =>
    worded(records, noun, records.wholeInLists ? { ...listed, ...detail } : listed),
  )
  const { body, headers } = enveloped(form, { ...page, items }, request)
  return { ...jsonRepresentation(jsonBytes(body), lastModified), headers }
}

/** One thing, with its details. */
export function itemReply({ records }: Shape, noun: Noun, { listed, detail, lastModified }: Entry): Representation {
  return recordReply(worded(records, noun, { ...listed, ...detail }), lastModified)
}

/** A record that is in the form of the shape already. */
export function recordReply(record: object, lastModified: number): Representation {
  return jsonRepresentation(jsonBytes(record), lastModified)
}

/** An artifact answer: its URLs are new each time, so it carries no validators. */
export function artifactReply(
  { request }: Call,
  form: ArtifactForm,
  { kind, urls, keyUrl }: ArtifactUrls,
  artifactUrl: string,
): NegotiatedAnswer {
  const { fault } = request
  const forged = fault?.kind === 'artifactUrl' ? fault.url : undefined
  const named = { kind, urls: urls.map((url) => forged ?? url), keyUrl: forged ?? keyUrl ?? '' }
  const [only, ...more] = named.urls
  if (form.form === 'redirect' && only !== undefined && more.length === 0)
    return { ...emptyReply(), status: 302, headers: { Location: only } }
  if (form.links === 'location' && only !== undefined && more.length === 0) {
    const answer = jsonAnswer(200, { status: 'ready' })
    return { ...answer, headers: { ...answer.headers, Location: only } }
  }
  const self = `http://${request.headers.host ?? ''}${request.path}`
  const linked = linkedBody(form.links, named, { self, artifactUrl })
  return jsonAnswer(200, linked ?? artifactBody(form, named))
}

/** 202, or a 200 without a document: the artifact is in the making. */
export function pendingReply({ unfinished }: ArtifactForm): NegotiatedAnswer {
  if (unfinished !== undefined) return jsonAnswer(200, UNFINISHED_ANSWERS[unfinished])
  const answer = jsonAnswer(202, { status: 'pending' })
  return { ...answer, headers: { ...answer.headers, 'Retry-After': 1 } }
}

/** Returns 204 without a body. */
export function emptyReply(): NegotiatedAnswer {
  return { status: 204, headers: {}, length: 0, body: () => [] }
}

const json = JSON as unknown as { rawJSON: (text: string) => object } // not in the ES2024 types

/** A number written exactly so in the JSON: beyond 2^53, or `9.0`, which no JavaScript number would give. */
export function exactly(text: string): object {
  return json.rawJSON(text)
}

/** A value as the bytes of its JSON. */
export function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}
