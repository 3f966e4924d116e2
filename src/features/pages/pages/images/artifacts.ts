import { requestedPath } from '../../../../server/catalog/not-found.ts'
import { MirrorError, messageOf } from '../../../../base/errors.ts'
import type { ArtifactSignature } from '../../../../base/domain/artifacts/signature.ts'
import { RESOURCES } from '../../../../base/domain/resources.ts'
import { valueAt } from '../../../../base/json/slices.ts'
import { isNone } from '../../../../store/catalog/answers.ts'
import type { PageCall } from '../../page.ts'

/** Kinds of artifacts that a tag, or a set of artifacts of an AVR, has. */
export type ShownKind = 'sbom' | 'vex' | 'provenance'

/** A document of an artifact. */
export interface StoredArtifact {
  readonly digest: string
  readonly type: string
  readonly size: number
  /** Where this mirror serves it. */
  readonly href: string
}

/** The artifact of one kind, as far as this mirror has it. */
export interface Artifact {
  readonly kind: ShownKind
  /** The path of the mirror that answers for it. */
  readonly path: string
  readonly documents: readonly StoredArtifact[]
  /** What the verification of its signatures came to; null: it was not verified. */
  readonly signature: ArtifactSignature | null
  /** Why there is no document; null where there is one. */
  readonly why: string | null
}

/** Returns the artifacts of a tag or an AVR, in the order of their kinds. */
export function listArtifacts(call: PageCall, owner: 'tags' | 'avrs', id: string): readonly Artifact[] {
  const { artifacts = [] } = RESOURCES.find(({ name }) => name === owner) ?? {}
  return artifacts.flatMap(({ path, document }) => (document === 'text' ? [] : [artifactOf(call, path, document, id)]))
}

function artifactOf(call: PageCall, route: string, kind: ShownKind, id: string): Artifact {
  const params = { id }
  const path = requestedPath(route, params)
  const answer = call.reads.catalog.readAnswer(path)
  const signature = answer === null ? null : call.reads.catalog.readSignature(path, answer)
  const common = { kind, path, signature } as const
  const isRefused = call.reads.catalog.readMissingPath(path)?.status === 403
  if (answer === null || isRefused) return { ...common, documents: [], why: whyMissing(call, route, params) }
  if (isNone(answer)) {
    const why = `The service has none: it answered ${answer.status} when the mirror asked.`
    return { ...common, documents: [], why }
  }
  const linked = answer.body === null ? null : bodyOf(call, route, params)
  const documents = answer.links.flatMap(({ at, digest, type }): StoredArtifact[] => {
    const stored = call.reads.catalog.readDocument(digest)
    if (stored === null) return []
    const url = linked === null ? null : valueAt(linked, at)
    // A document that stands in the answer itself may be a text.
    const href = typeof url === 'string' && URL.canParse(url) ? url : call.root(path)
    return [{ digest, type: type ?? stored.type, size: stored.size, href }]
  })
  const why = documents.length === 0 ? 'The answer of the service names no document.' : null
  return { ...common, documents, why }
}

/** Returns the answer as clients get it, with links to the documents of this mirror; null where it has none. */
function bodyOf({ readApi }: PageCall, route: string, params: { id: string }): unknown {
  const reply = readApi(route, { params })
  if (!('body' in reply) || reply.body === null) return null
  return JSON.parse(Buffer.from(reply.body).toString('utf8'))
}

/** Returns the API's reason why an answer is missing. */
function whyMissing({ readApi }: PageCall, route: string, params: { id: string }): string {
  try {
    const reply = readApi(route, { params })
    return 'problem' in reply ? reply.problem.message : 'It is not mirrored.'
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'not_ready') return messageOf(error)
    throw error
  }
}
