import type { Representation } from '../../representation.ts'
import { type Call, type Reply, ServiceError } from '../call.ts'
import type { OwnerKind } from '../holdings.ts'
import type { Parts } from '../parts.ts'
import { artifactReply, emptyReply, pendingReply, recordReply } from '../replies.ts'
import { typeOf } from '../documents.ts'
import { NEWEST } from '../generate-tickets.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'

/** The answer that names an owner's documents of one kind, or is one; 404 or 204 when it never had any. */
export function artifactsOf(
  parts: Parts,
  call: Call,
  owner: { kind: OwnerKind; id: string },
  kind: ArtifactKind,
): Reply {
  const { state, presigner, pending } = parts
  const form = parts.shape.artifacts
  const numbers = state.holdings.of(owner.kind, owner.id)[kind]
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
