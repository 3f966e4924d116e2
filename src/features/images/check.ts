import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import type { Presence } from '../../store/catalog/in-registry.ts'
import { expectOwn404, expectRegistry, hasManifest, openRepository } from '../bundles/oci/registry.ts'
import { type RegistryReference, readReference } from '../../config/kinds/oci-reference.ts'
import { retryAfterMs, statusOf } from '../../upstream/http/errors.ts'
import { type Delay, createRetrying } from '../../upstream/http/retry.ts'
import { realDelay } from '../../upstream/client.ts'
import { type CatalogImage, pinned, withoutRegistry } from './formats.ts'

type Network = Pick<Config, 'upstream' | 'network'>
type Unknown = Extract<Presence, { is: 'not known' }>

/** Repositories that are asked at a time. */
const AT_ONCE = 8
/** Requests in a row without an answer, or with the answer to come later, after which a registry is asked no more. */
const GIVE_UP = 3
/** The longest time that all requests of a check wait together because the registry asks for it, milliseconds: an hour for `AT_ONCE`. */
const MOST_WAIT_MS = AT_ONCE * 3_600_000

/** What is called while a check goes on. */
interface Hearing {
  /** Called for each image as it is known. */
  readonly onAnswer?: (image: CatalogImage, presence: Presence) => void
  /** Called before a pause that the registry asks for, milliseconds. */
  readonly onWait?: (ms: number) => void
  readonly delay?: Delay
}

/**
 * Asks a registry for each image by its digest (HEAD), each until it is answered: a Retry-After is waited for, within the rule of
 * `upstream` and `MOST_WAIT_MS`. `place`: HOST/PREFIX; the repositories are below it, without their registry.
 */
export async function checkImages(
  network: Network,
  place: string,
  images: readonly CatalogImage[],
  { onAnswer = () => undefined, onWait = () => undefined, delay = realDelay }: Hearing = {},
): Promise<ReadonlyMap<string, Presence>> {
  const byName = new Map(images.map((one) => [pinned(one), one]))
  const repositories = [...Map.groupBy(byName.values(), (one) => one.repository).values()]
  const found = new Map<string, Presence>()
  const tell = (image: CatalogImage, presence: Presence): void => {
    found.set(pinned(image), presence)
    onAnswer(image, presence)
  }
  const ask = createAsking(network, delay, onWait)
  const work = async (): Promise<void> => {
    for (let next = repositories.pop(); next !== undefined; next = repositories.pop())
      await askRepository({ network, place, ask, tell }, next)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return found
}

/** What the images of a repository are asked with. */
interface Asking {
  readonly network: Network
  readonly place: string
  readonly ask: ReturnType<typeof createAsking>
  readonly tell: (image: CatalogImage, presence: Presence) => void
}

/** Asks for the images of one repository, in one session; where it cannot be asked, none of them is known. */
async function askRepository({ network, place, ask, tell }: Asking, images: readonly CatalogImage[]): Promise<void> {
  const [first] = images
  const named = referenceOf(place, first)
  if ('is' in named) return images.forEach((image) => tell(image, named))
  const repository = openRepository(network, named, 'pull')
  try {
    const why = await ask(() => expectRegistry(repository).then(() => null))
    for (const image of images) {
      const one = { ...repository, reference: { ...named, name: image.digest } }
      const answer = why ?? (await ask(() => presenceOf(one)))
      tell(image, answer)
    }
  } finally {
    await repository.session.close()
  }
}

/** Returns what makes requests of a registry; where it does not answer, no more of them: the rest is not known for the same reason. */
function createAsking({ upstream }: Network, delay: Delay, onWait: (ms: number) => void) {
  let inRow = 0
  let waitedMs = 0
  let silence: Unknown | null = null
  const waiting = (_: unknown, ms: number): void => {
    waitedMs += ms
    onWait(ms)
  }
  const mayRepeat = (error: unknown): boolean =>
    silence === null && waitedMs < MOST_WAIT_MS && retryAfterMs(error) !== null
  const retrying = createRetrying(upstream, new AbortController().signal, delay, waiting, mayRepeat)
  return async <T>(work: () => Promise<T>): Promise<T | Unknown> => {
    if (silence !== null) return silence
    try {
      const answer = await retrying(work)
      inRow = 0
      return answer
    } catch (error) {
      const unknown = unknownFor(error)
      inRow = unknown.code === 'upstream_unreachable' || isAskedLater(error) ? inRow + 1 : 0
      if (inRow === GIVE_UP)
        silence = {
          ...unknown,
          why: `${unknown.why}; so for ${GIVE_UP} requests in a row: no more were made`,
          code: null,
        }
      return unknown
    }
  }
}

/** Whether an error is the answer that there were too many requests, or names a time for the next. */
function isAskedLater(error: unknown): boolean {
  return statusOf(error) === 429 || retryAfterMs(error) !== null
}

/** Returns that it is not known, with the reason. Throws what says nothing about the registry. */
function unknownFor(error: unknown): Unknown {
  if (!(error instanceof MirrorError) || error.code === 'config') throw error
  return { is: 'not known', why: error.message, code: error.code }
}

/** Returns where an image is in the registry; that it is not known for a name that no registry can have. */
function referenceOf(place: string, image: CatalogImage | undefined): RegistryReference | Unknown {
  const name = image === undefined ? '' : pinned(withoutRegistry(image))
  try {
    const reference = readReference(`oci://${place.replace(/\/$/, '')}/${name}`)
    if (reference?.kind === 'registry') return reference
  } catch (error) {
    return unknownFor(error)
  }
  throw new MirrorError('usage', `${place} is no registry`)
}

/** Each 404 is asked for in its own words: what stands before the registry may have answered it, whatever was answered before. */
async function presenceOf(repository: Parameters<typeof hasManifest>[0]): Promise<Presence> {
  if (await hasManifest(repository)) return { is: 'there' }
  await expectOwn404(repository)
  return { is: 'missing' }
}
