import { jsonTextOf } from '../../../base/json/objects.ts'
import { MAX_VALUES, countValues } from '../../../base/json/values.ts'
import { wholeUnpacked } from '../../../store/catalog/whole-content.ts'
import type { Reads } from '../../../store/reads.ts'

/** Reads stored documents for pages. */
export interface PageDocuments {
  /** Returns what `make` finds in a document's JSON; `null` of `make`: the document is of another kind. */
  read<T>(digest: string, make: (value: unknown) => T | null): T | Unreadable
}

/** Why a document is not shown. */
export interface Unreadable {
  readonly unreadable: string
}

/** Largest document that is read for a page, bytes. */
const MAX_BYTES = 32 * 2 ** 20
/** Most lines of JSON lines that are read. */
const MAX_LINES = 100
/** PageDocuments whose contents are remembered, so that their further pages are quick. */
const REMEMBERED = 4

/** Creates reads of documents; what was found in the last ones is remembered, as a document never changes. */
export function createPageDocuments({ catalog }: Pick<Reads, 'catalog'>): PageDocuments {
  const known = new Map<string, { readonly make: unknown; readonly found: unknown }>()
  return {
    read<T>(digest: string, make: (value: unknown) => T | null): T | Unreadable {
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

function readWhole<T>(catalog: Reads['catalog'], digest: string, make: (value: unknown) => T | null): T | Unreadable {
  const content = wholeUnpacked(catalog, digest, MAX_BYTES)
  if (typeof content === 'string') return { unreadable: UNREADABLE[content] }
  if (countValues(content) > MAX_VALUES) return { unreadable: 'It has more than 2 million values.' }
  const value = parse(jsonTextOf(content))
  if (value === null) return { unreadable: 'It is no JSON.' }
  return make(value) ?? { unreadable: 'It is of a format that pages do not show.' }
}

const UNREADABLE = {
  absent: 'It is not stored any more.',
  'too large': 'It is larger than 32 MiB.',
  incomplete: 'A part of it is missing in the store.',
} as const

/** Parses JSON, or the first lines of JSON lines as a list; null for anything else. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const lines = text.split('\n', MAX_LINES + 1).filter((line) => line.trim() !== '')
    try {
      return lines.slice(0, MAX_LINES).map((line) => JSON.parse(line) as unknown)
    } catch {
      return null
    }
  }
}
