import { RESOURCES } from '../../../../base/domain/resources.ts'
import { valueAt } from '../../../../base/json/slices.ts'
import type { Artifact, ArtifactKind } from '../../../lookup/tag.ts'
import type { PageCall } from '../../page.ts'

/** A document of an artifact. */
export interface ShownDocument {
  readonly digest: string
  readonly type: string
  /** Where this mirror serves it. */
  readonly href: string
}

/** The documents of an artifact, as a page leads to them. */
export interface ShownArtifact {
  readonly kind: ArtifactKind
  readonly documents: readonly ShownDocument[]
}

/** Returns the documents of the artifacts of a tag or an AVR, with their addresses. */
export function shownArtifacts(
  call: PageCall,
  owner: 'tags' | 'avrs',
  id: string,
  artifacts: readonly Artifact[],
): ShownArtifact[] {
  return artifacts.map(({ kind, path, documents }) => {
    const links = call.reads.catalog.readAnswer(path)?.links ?? []
    const body = documents.length === 0 ? null : bodyOf(call, owner, kind, id)
    const shown = documents.map(({ digest, type }): ShownDocument => {
      const at = links.find((link) => link.digest === digest)?.at
      const url = body === null || at === undefined ? null : valueAt(body, at)
      // A document that stands in the answer itself may be a text.
      const href = typeof url === 'string' && URL.canParse(url) ? url : call.root(path)
      return { digest, type, href }
    })
    return { kind, documents: shown }
  })
}

/** Returns the answer as clients get it, with links to the documents of this mirror; null where it has none. */
function bodyOf({ readApi }: PageCall, owner: string, kind: ArtifactKind, id: string): unknown {
  const { artifacts = [] } = RESOURCES.find(({ name }) => name === owner) ?? {}
  const route = artifacts.find(({ document }) => document === kind)?.path
  const reply = route === undefined ? null : readApi(route, { params: { id } })
  if (reply === null || !('body' in reply) || reply.body === null) return null
  return JSON.parse(Buffer.from(reply.body).toString('utf8'))
}
