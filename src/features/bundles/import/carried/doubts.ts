import { DOUBTS, type Doubt } from '../../../../base/domain/doubts.ts'
import { type SourceName, SOURCES } from '../../../../base/domain/sources.ts'
import { carriedMember } from '../../format/carried.ts'
import { DOUBT_NAMES_HEADER, MOST_CARRIED, parseDoubtName } from '../../format/doubts.ts'
import type { Bundle } from '../open.ts'
import { readCarriedLines } from './lines.ts'

/** Largest content of the member: as many names as there may be, each character escaped. */
const MAX_BYTES = SOURCES.length * Object.keys(DOUBTS).length * MOST_CARRIED.names * MOST_CARRIED.characters * 6

/** Names of doubtful items by their source and kind. */
type CarriedNames = ReadonlyMap<SourceName, Readonly<Partial<Record<Doubt, readonly string[]>>>>

/** Reads the names of what bundles carry as doubtful, each once. Throws `bundle`. */
export async function readDoubtNames(bundles: readonly Pick<Bundle, 'manifest' | 'stream'>[]): Promise<CarriedNames> {
  const found = new Map<SourceName, Partial<Record<Doubt, string[]>>>()
  for (const bundle of bundles) {
    const name = carriedMember(bundle.manifest, 'doubt-names')
    if (name === null) continue
    const lines = await readCarriedLines(bundle, name, { header: DOUBT_NAMES_HEADER, maxBytes: MAX_BYTES })
    for (const { value, place } of lines) {
      const item = parseDoubtName(value, place)
      if (item === null) continue
      const [source, kind, text] = item
      const kinds = found.get(source) ?? {}
      found.set(source, kinds)
      kinds[kind] = [...new Set([...(kinds[kind] ?? []), text])].slice(0, MOST_CARRIED.names)
    }
  }
  return found
}
