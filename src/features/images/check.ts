import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { expectRegistry, hasManifest, openRepository } from '../bundles/oci/registry.ts'
import { type RegistryReference, readReference } from '../../config/kinds/oci-reference.ts'
import { type CatalogImage, pinned, withoutRegistry } from './formats.ts'

/** What is known of an image in a registry: it answered for the digest, it answered that there is none, or neither. */
export type Presence = { readonly is: 'there' | 'missing' } | { readonly is: 'not known'; readonly why: string }

/** Repositories that are asked at a time. */
const AT_ONCE = 8

/** Asks a registry for each image by its digest (HEAD), each once. `place`: HOST/PREFIX; the repositories are below it, without their registry. */
export async function checkImages(
  network: Pick<Config, 'upstream' | 'network'>,
  place: string,
  images: readonly CatalogImage[],
): Promise<ReadonlyMap<string, Presence>> {
  const byName = new Map(images.map((one) => [pinned(one), one]))
  const repositories = [...Map.groupBy(byName.values(), (one) => one.repository).values()]
  const found = new Map<string, Presence>()
  const work = async (): Promise<void> => {
    for (let next = repositories.pop(); next !== undefined; next = repositories.pop())
      for (const [name, presence] of await askRepository(network, place, next)) found.set(name, presence)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return found
}

/** Asks for the images of one repository, in one session; where it cannot be asked, none of them is known. */
async function askRepository(
  network: Pick<Config, 'upstream' | 'network'>,
  place: string,
  images: readonly CatalogImage[],
): Promise<Map<string, Presence>> {
  const [first] = images
  const named = await orWhy(() => Promise.resolve(referenceOf(place, first)))
  if ('is' in named) return new Map(images.map((image) => [pinned(image), named]))
  const repository = openRepository(network, named, 'pull')
  try {
    const why = await orWhy(() => expectRegistry(repository).then(() => null))
    const answers = new Map<string, Presence>()
    for (const image of images) {
      const one = { ...repository, reference: { ...named, name: image.digest } }
      answers.set(pinned(image), why ?? (await orWhy(() => presenceOf(one))))
    }
    return answers
  } finally {
    await repository.session.close()
  }
}

/** Returns where an image is in the registry. Throws `usage` for a name that no registry can have. */
function referenceOf(place: string, image: CatalogImage | undefined): RegistryReference {
  const reference =
    image === undefined ? null : readReference(`oci://${place.replace(/\/$/, '')}/${pinned(withoutRegistry(image))}`)
  if (reference?.kind === 'registry') return reference
  throw new MirrorError('usage', `${place} is no registry`)
}

async function presenceOf(repository: Parameters<typeof hasManifest>[0]): Promise<Presence> {
  return { is: (await hasManifest(repository)) ? 'there' : 'missing' }
}

/** What `work` returns; where it fails, that it is not known, with the reason. */
async function orWhy<T>(work: () => Promise<T>): Promise<T | Presence> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code === 'config') throw error
    return { is: 'not known', why: error.message }
  }
}
