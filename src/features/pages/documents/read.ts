import { MirrorError } from '../../../base/errors.ts'
import { MAX_VALUES, countValues } from '../../../base/json/values.ts'
import { wholeUnpacked } from '../../../store/catalog/whole-content.ts'
import type { Reads } from '../../../store/reads.ts'

/** Reads stored documents for pages. */
export type PageDocuments = ReturnType<typeof createPageDocuments>

/** Why a document is not shown. */
export interface Unreadable {
  readonly unreadable: string
}

/** Largest document that is read for a page, bytes. */
const MAX_BYTES = 32 * 2 ** 20
/** PageDocuments whose contents are remembered, so that their further pages are quick. */
const REMEMBERED = 4

/** Creates reads of documents; what was found in the last ones is remembered, as a document never changes. */
export function createPageDocuments({ catalog }: Pick<Reads, 'catalog'>) {
  const known = new Map<string, { readonly make: unknown; readonly found: unknown }>()
  return {
    /**
     * Returns what `make` finds in a document; `null` of `make`: the document is of another kind. What it throws as `bad_request`
     * is why the document is not shown.
     */
    read<T>(digest: string, make: (content: Buffer) => T | null): T | Unreadable {
      const before = known.get(digest)
      if (before !== undefined && before.make === make) return before.found as T | Unreadable
      const found = readWhole(catalog, digest, make)
      known.delete(digest)
      known.set(digest, { make, found })
      const [oldest] = known.keys()
      if (known.size > REMEMBERED && oldest !== undefined) known.delete(oldest)
      return found
    },
  }
}

function readWhole<T>(catalog: Reads['catalog'], digest: string, make: (content: Buffer) => T | null): T | Unreadable {
  const content = wholeUnpacked(catalog, digest, MAX_BYTES)
  if (typeof content === 'string') return { unreadable: UNREADABLE[content] }
  if (countValues(content) > MAX_VALUES) return { unreadable: 'It has more than 2 million values.' }
  try {
    return make(content) ?? { unreadable: 'It is of a format that pages do not show.' }
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'bad_request') throw error
    return { unreadable: `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.` }
  }
}

const UNREADABLE = {
  absent: 'It is not stored any more.',
  'too large': 'It is larger than 32 MiB.',
  incomplete: 'A part of it is missing in the store.',
} as const
