import { type Call, missing } from '../request.ts'
import type { OwnerKind } from '../data/documents.ts'
import type { Parts } from '../parts.ts'
import { listReply } from '../replies.ts'
import type { Route } from '../router.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'
import { artifactsOf, asked, get, itemRow, listRow } from './artifacts.ts'

/** Image catalog, tags and their artifacts, AVR artifacts (service API, section 4). */
export function imageRoutes(parts: Parts): Route[] {
  const { state, shape } = parts
  const of = (owner: OwnerKind, path: string, artifact: ArtifactKind): Route =>
    get(path, 'artifact', (call) => {
      const { id } = owner === 'avr' ? asked(call, state.avrs, 'AVR') : asked(call, state.tags, 'tag')
      return artifactsOf(parts, call, { kind: owner, id }, artifact)
    })
  return [
    listRow('/v1/images/', state.images, shape),
    of('tag', '/v1/images/tags/{tagID}/sbom', 'sbom'),
    get('/v1/images/{imageRepo}/tags', 'list', (call) => tagsOf(parts, call)),
    itemRow('/v1/images/{imageID}', state.images, 'image', shape),
    listRow('/v1/tags/', state.tags, shape),
    itemRow('/v1/tags/{tagID}', state.tags, 'tag', shape),
    of('tag', '/v1/tags/{tagID}/sbom', 'sbom'),
    of('tag', '/v1/tags/{tagID}/vex', 'vex'),
    of('tag', '/v1/tags/{tagID}/provenance', 'provenance'),
    of('avr', '/v1/avrs/{avrID}/artifacts/sbom', 'sbom'),
    of('avr', '/v1/avrs/{avrID}/artifacts/vex', 'vex'),
    of('avr', '/v1/avrs/{avrID}/artifacts/provenance', 'provenance'),
  ]
}

function tagsOf({ state: { images, tags }, shape }: Parts, call: Call) {
  const [repository = ''] = call.params
  const known = images.select(repository, () => images.all().filter(({ listed }) => listed.repository === repository))
  if (known.length === 0) throw missing('image repository', repository)
  const entries = tags.select(repository, () =>
    tags.all().filter(({ listed }) => listed.image.repository === repository),
  )
  return listReply(call, shape, { noun: tags.noun, entries, lastModified: tags.lastModified() })
}
