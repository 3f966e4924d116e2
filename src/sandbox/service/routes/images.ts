import { type Call, missing } from '../call.ts'
import type { Parts } from '../parts.ts'
import { itemReply, listReply } from '../replies.ts'
import type { Route } from '../router.ts'
import type { ArtifactKind } from '../shape.ts'
import { artifactsOf } from './artifacts.ts'

/** Image catalog, tags and their artifacts, AVR artifacts (service API, section 4). */
export function imageRoutes(parts: Parts): Route[] {
  const { state, shape } = parts
  const { images, tags, avrs } = state
  const get = (path: string, kind: Route['kind'], serve: Route['serve']): Route => {
    return { method: 'GET', path: `/v1${path}`, kind, serve }
  }
  const ofTag = (kind: ArtifactKind) => (call: Call) => {
    const [id = ''] = call.params
    if (tags.get(id) === undefined) throw missing('tag', id)
    return artifactsOf(parts, call, { kind: 'tag', id }, kind)
  }
  const ofAvr = (kind: ArtifactKind) => (call: Call) => {
    const [id = ''] = call.params
    if (avrs.get(id) === undefined) throw missing('AVR', id)
    return artifactsOf(parts, call, { kind: 'avr', id }, kind)
  }
  const tagsOf = (call: Call) => {
    const [repository = ''] = call.params
    const known = images.select(repository, () =>
      images.all().filter(({ listed }) => listed.repository === repository),
    )
    if (known.length === 0) throw missing('image repository', repository)
    const entries = tags.select(repository, () =>
      tags.all().filter(({ listed }) => listed.image.repository === repository),
    )
    return listReply(call, shape, { entries, lastModified: tags.lastModified() })
  }
  return [
    get('/images/', 'list', (call) =>
      listReply(call, shape, { entries: images.all(), lastModified: images.lastModified() }),
    ),
    get('/images/tags/{tagID}/sbom', 'artifact', ofTag('sbom')),
    get('/images/{imageRepo}/tags', 'list', tagsOf),
    get('/images/{imageID}', 'item', ({ params: [id = ''] }) => {
      const entry = images.get(id)
      if (entry === undefined) throw missing('image', id)
      return itemReply(entry)
    }),
    get('/tags/', 'list', (call) =>
      listReply(call, shape, { entries: tags.all(), lastModified: tags.lastModified() }),
    ),
    get('/tags/{tagID}', 'item', ({ params: [id = ''] }) => {
      const entry = tags.get(id)
      if (entry === undefined) throw missing('tag', id)
      return itemReply(entry)
    }),
    get('/tags/{tagID}/sbom', 'artifact', ofTag('sbom')),
    get('/tags/{tagID}/vex', 'artifact', ofTag('vex')),
    get('/tags/{tagID}/provenance', 'artifact', ofTag('provenance')),
    get('/avrs/{avrID}/artifacts/sbom', 'artifact', ofAvr('sbom')),
    get('/avrs/{avrID}/artifacts/vex', 'artifact', ofAvr('vex')),
    get('/avrs/{avrID}/artifacts/provenance', 'artifact', ofAvr('provenance')),
  ]
}
