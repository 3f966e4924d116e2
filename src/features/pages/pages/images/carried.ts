import { type Cell, plain, state, time } from '../../../lookup/answers/cells.ts'
import { readRegistryNote, registryNoteMark } from '../../../../store/catalog/in-registry.ts'
import type { PageCall } from '../../page.ts'
import type { ImageRow } from './rows.ts'

/** Whether the registry has all images of a tag. `at`: when it was asked for the one that decides, Unix milliseconds. */
type Carried = { readonly is: 'there' | 'missing'; readonly at: number } | { readonly is: 'not known' }

/** Returns what knows of a tag whether the registry has all of its images; null where the settings name no registry. */
export function openRegistry({
  config,
  remember,
}: Pick<PageCall, 'config' | 'remember'>): ((repository: string, digests: readonly string[]) => Carried) | null {
  const { registry } = config.images
  if (registry === null) return null
  const { dir } = config.data
  const { images } = remember(`registry ${registryNoteMark(dir)}`, () => readRegistryNote(dir, registry))
  return (repository, digests) => {
    const found = digests.map((one) => images[`${repository}@${one}`])
    const missing = found.find((one) => one?.is === 'missing')
    if (missing !== undefined) return { is: 'missing', at: missing.at }
    const asked = found.flatMap((one) => (one?.is === 'there' ? one.at : []))
    if (asked.length < found.length || found.length === 0) return { is: 'not known' }
    return { is: 'there', at: Math.min(...asked) }
  }
}

/** Returns what says of a tag whether the registry has all of its images; null where the settings name no registry. */
export function openCarried(call: PageCall): ((row: ImageRow) => Cell) | null {
  const carriedOf = openRegistry(call)
  if (carriedOf === null) return null
  return ({ image, digests }) => {
    if (digests.length === 0) return plain(null)
    const carried = carriedOf(image, digests)
    if (carried.is === 'missing') return state('missing', 'warn')
    if (carried.is === 'there') return { ...state('there', 'good'), note: time(carried.at, call.now).note ?? '' }
    return state('not known', 'plain') // mostly of all images for one reason, which is on the page Status
  }
}
