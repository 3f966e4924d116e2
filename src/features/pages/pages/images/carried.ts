import { type Cell, plain, state, time } from '../../../../answers/cells.ts'
import { readRegistryNote, registryNoteMark } from '../../../../store/catalog/in-registry.ts'
import type { PageCall } from '../../page.ts'
import type { ImageRow } from './rows.ts'

/** Returns what says of a tag whether the registry has all of its images; null where the settings name no registry. */
export function openCarried({ config, now, remember }: PageCall): ((row: ImageRow) => Cell) | null {
  const { registry } = config.images
  if (registry === null) return null
  const { dir } = config.data
  const { images } = remember(`registry ${registryNoteMark(dir)}`, () => readRegistryNote(dir, registry))
  return ({ image, digests }) => {
    if (digests.length === 0) return plain(null)
    const found = digests.map((one) => images[`${image}@${one}`])
    if (found.some((one) => one?.is === 'missing')) return state('missing', 'warn')
    const asked = found.map((one) => (one?.is === 'there' ? one.at : null)).filter((at) => at !== null)
    if (asked.length === found.length)
      return { ...state('there', 'good'), note: time(Math.min(...asked), now).note ?? '' }
    return state('not known', 'plain') // mostly of all images for one reason, which is on the page Status
  }
}
