import { type Call, type Reply, ServiceError } from '../call.ts'
import type { OwnerKind } from '../holdings.ts'
import type { Parts } from '../parts.ts'
import { artifactReply } from '../replies.ts'
import type { ArtifactKind } from '../shape.ts'

/** The answer that names an owner's documents of one kind; 404 when it never had any. */
export function artifactsOf(
  { state, presigner, shape }: Parts,
  call: Call,
  owner: { kind: OwnerKind; id: string },
  kind: ArtifactKind,
): Reply {
  const numbers = state.holdings.of(owner.kind, owner.id)[kind]
  if (numbers === undefined) {
    throw new ServiceError(404, `the ${owner.kind} ${owner.id} has no ${kind}`)
  }
  const urls = numbers.map((number) => presigner.url({ kind, number }))
  const keyUrl = presigner.url({ kind: 'key', number: 0 })
  return artifactReply(call, shape, { kind, urls, keyUrl })
}
