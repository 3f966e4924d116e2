import { type Cell, plain, state, time } from '../../../../answers/cells.ts'
import { clip } from '../../../../base/text.ts'
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
    const unknown = found.find((one) => one?.is !== 'there')
    const asked = found.map((one) => (one?.is === 'there' ? one.at : null)).filter((at) => at !== null)
    if (asked.length === found.length)
      return { ...state('there', 'good'), note: time(Math.min(...asked), now).note ?? '' }
    const why = unknown?.is === 'not known' ? unknown.why : 'it was not asked for yet'
    return { ...state('not known', 'plain'), note: clip(why, 100) }
  }
}
