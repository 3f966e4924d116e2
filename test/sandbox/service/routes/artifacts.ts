import { type Representation, jsonRepresentation } from '../../feed/representation.ts'
import { type Call, type Reply, ServiceError, missing } from '../request.ts'
import { type DocumentName, type OwnerKind, typeOf } from '../data/documents.ts'
import type { Parts } from '../parts.ts'
import { artifactReply, emptyReply, pendingReply, recordReply, itemReply, listReply } from '../replies.ts'
import { NEWEST } from '../data/tickets.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'
import type { NegotiatedAnswer } from '../../http/negotiate.ts'
import type { Collection, Entry } from '../data/collection.ts'
import type { Route } from '../router.ts'
import { enclosed } from '../shapes/around.ts'
import type { ArtifactForm, Shape } from '../shapes/shape.ts'

/** The answer that names an owner's documents of one kind, or is one; 404 or 204 when it never had any. */
export function artifactsOf(
  parts: Parts,
  call: Call,
  owner: { kind: OwnerKind; id: string },
  kind: ArtifactKind,
): Reply {
  const { state, presigner, pending, addresses } = parts
  const form = parts.shape.artifacts
  const numbers = state.artifacts.of(owner.kind, owner.id)[kind]
  if (form.none === 204 && (numbers ?? []).length === 0) return emptyReply()
  if (numbers === undefined) {
    throw new ServiceError(404, `the ${owner.kind} ${owner.id} has no ${kind}`)
  }
  const key = `${owner.kind}/${owner.id}/${kind}`
  const asked = pending.get(key) ?? 0
  if (asked < form.pending) {
    pending.set(key, asked + 1)
    return pendingReply(form)
  }
  if (form.form === 'inline') return inlineReply(parts, kind, numbers)
  const isOwn = form.links === 'relative' || form.links === 'location'
  const urlOf = (name: DocumentName): string => (isOwn ? `${FILES}${name.kind}-${name.number}` : presigner.url(name))
  const urls = numbers.map((number) => urlOf({ kind, number }))
  const keyUrl = urlOf({ kind: 'key', number: 0 })
  return artifactReply(call, form, { kind, urls, keyUrl }, addresses.artifactUrl)
}

/** Where the service itself has documents, for those with a credential. */
const FILES = '/v1/files/'
const FILE = /^(sbom|vex|provenance|patches|key)-(\d{1,9})$/

/** The documents that the service's own paths lead to. */
export function fileRoute({ documents }: Parts): Route {
  return get(`${FILES}{name}`, 'document', ({ params: [name = ''] }) => {
    const [, kind, number] = FILE.exec(name) ?? []
    if (kind === undefined) throw missing('file', name)
    return documents.read({ kind: kind as DocumentName['kind'], number: Number(number) }) // the expression's words
  })
}

/** The document itself; patches, of which there may be several, as texts in an object. */
function inlineReply({ documents, shape }: Parts, kind: ArtifactKind, numbers: readonly number[]): Representation {
  const [only, ...more] = numbers
  if (kind !== 'patches' && only !== undefined && more.length === 0)
    return inEnvelope(documents.read({ kind, number: only }), shape.artifacts.around)
  const patches = numbers.map((number, i) => ({
    name: `${i + 1}.patch`,
    content: Buffer.concat(documents.read({ kind, number }).chunks()).toString(),
  }))
  const reply = recordReply({ patches }, NEWEST)
  return { ...reply, type: typeOf(reply.type, shape.artifacts.types) }
}

/** A document with what is around it. */
function inEnvelope(document: Representation, around: ArtifactForm['around']): Representation {
  if (around === undefined) return document
  const { bytes, type } = enclosed(around, {
    bytes: Buffer.concat(document.chunks()),
    type: document.type,
  })
  return { ...jsonRepresentation(bytes, document.lastModified), type }
}

/** A row that reads. */
export function get(path: string, kind: Route['kind'], serve: Route['serve']): Route {
  return { method: 'GET', path, kind, serve }
}

/** The list of a whole collection. */
export function listRow<F extends object>(path: string, collection: Collection<F>, shape: Shape): Route {
  const serve = (call: Call): Representation =>
    listReply(call, shape, {
      noun: collection.noun,
      entries: collection.all(),
      lastModified: collection.lastModified(),
    })
  return get(path, 'list', serve)
}

/** One thing of a collection, by the path's parameter. */
export function itemRow<F extends object>(path: string, collection: Collection<F>, what: string, shape: Shape): Route {
  return get(path, 'item', (call) => itemReply(shape, collection.noun, asked(call, collection, what)))
}

/** A row that changes something. */
export function action(
  method: 'POST' | 'DELETE',
  path: string,
  serve: (call: Call) => NegotiatedAnswer | Promise<NegotiatedAnswer>,
): Route {
  return { method, path, kind: 'action', serve }
}

/** What the path's first parameter names; 404 when the collection has no such thing. */
export function asked<F extends object>(
  { params: [id = ''] }: Call,
  collection: Collection<F>,
  what: string,
): Entry<F> {
  const entry = collection.get(id)
  if (entry === undefined) throw missing(what, id)
  return entry
}
