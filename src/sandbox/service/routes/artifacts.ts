import type { Representation } from '../../feed/representation.ts'
import { type Call, type Reply, ServiceError, missing } from '../call.ts'
import { type OwnerKind, typeOf } from '../data/documents.ts'
import type { Parts } from '../types.ts'
import {
  artifactReply,
  emptyReply,
  pendingReply,
  recordReply,
  itemReply,
  listReply,
} from '../replies.ts'
import { NEWEST } from '../data/tickets.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'
import type { NegotiatedAnswer } from '../../http/negotiate.ts'
import type { Collection, Entry } from '../data/collection.ts'
import type { Route } from '../router.ts'
import type { Shape } from '../shapes/shape.ts'

/** The answer that names an owner's documents of one kind, or is one; 404 or 204 when it never had any. */
export function artifactsOf(
  parts: Parts,
  call: Call,
  owner: { kind: OwnerKind; id: string },
  kind: ArtifactKind,
): Reply {
  const { state, presigner, pending } = parts
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
    return pendingReply()
  }
  if (form.form === 'inline') return inlineReply(parts, kind, numbers)
  const urls = numbers.map((number) => presigner.url({ kind, number }))
  const keyUrl = presigner.url({ kind: 'key', number: 0 })
  return artifactReply(call, form, { kind, urls, keyUrl })
}

/** The document itself; patches, of which there may be several, as texts in an object. */
function inlineReply(
  { documents, shape }: Parts,
  kind: ArtifactKind,
  numbers: readonly number[],
): Representation {
  const [only, ...more] = numbers
  if (kind !== 'patches' && only !== undefined && more.length === 0)
    return documents.read({ kind, number: only })
  const patches = numbers.map((number, i) => ({
    name: `${i + 1}.patch`,
    content: Buffer.concat(documents.read({ kind, number }).chunks()).toString(),
  }))
  const reply = recordReply({ patches }, NEWEST)
  return { ...reply, type: typeOf(reply.type, shape.artifacts.types) }
}

/** A row that reads. */
export function get(path: string, kind: Route['kind'], serve: Route['serve']): Route {
  return { method: 'GET', path, kind, serve }
}

/** The list of a whole collection. */
export function listRow<F extends object>(
  path: string,
  collection: Collection<F>,
  shape: Shape,
): Route {
  const serve = (call: Call): Representation =>
    listReply(call, shape, {
      noun: collection.noun,
      entries: collection.all(),
      lastModified: collection.lastModified(),
    })
  return get(path, 'list', serve)
}

/** One thing of a collection, by the path's parameter. */
export function itemRow<F extends object>(
  path: string,
  collection: Collection<F>,
  what: string,
  shape: Shape,
): Route {
  return get(path, 'item', (call) =>
    itemReply(shape, collection.noun, asked(call, collection, what)),
  )
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
