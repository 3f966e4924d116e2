import { join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { type Setting, type Parsed, absolutePath, textSetting } from './base.ts'
import { type RegistryReference, readReference } from './oci-reference.ts'

/** Where bundles arrive: a folder, made absolute, or a tag of a registry. */
export function inbox(): Setting<string> {
  const allowed = 'a folder; a relative one counts from the working directory; or oci://HOST/REPOSITORY:TAG'
  return textSetting(allowed, '/media/usb/in', (text, context): Parsed<string> => {
    if (!text.startsWith('oci:')) return absolutePath(text, context)
    try {
      if (readReference(text)?.kind === 'registry') return { value: text }
      return { fault: 'is an image layout, which is not watched' }
    } catch (error) {
      return { fault: `is no place in a registry (${messageOf(error)})` }
    }
  })
}

/** The folder in which bundles are looked for: for a tag of a registry, its artifacts are put into one in the data folder. */
export function inboxFolder({ bundle, data }: InboxSettings): string | null {
  return watchedTag(bundle) === null ? bundle.inbox : join(data.dir, 'inbox')
}

/** The tag that is watched; null: none is. */
export function watchedTag({ inbox: place }: InboxSettings['bundle']): RegistryReference | null {
  const reference = place === null ? null : readReference(place)
  return reference?.kind === 'registry' ? reference : null
}

interface InboxSettings {
  readonly bundle: { readonly inbox: string | null }
  readonly data: { readonly dir: string }
}
