import type { NegotiatedAnswer } from '../../negotiate.ts'
import type { Representation } from '../../representation.ts'
import { type Call, missing } from '../call.ts'
import type { Collection, Entry } from '../collection.ts'
import { itemReply, listReply } from '../replies.ts'
import type { Route } from '../router.ts'
import type { Shape } from '../shapes/shape.ts'

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
