import { gunzipSync } from 'node:zlib'
import { MirrorError } from '../../../../base/errors.ts'
import { DOUBTS, type Doubt } from '../../../../base/domain/doubts.ts'
import { type SourceName, SOURCES } from '../../../../base/domain/sources.ts'
import { DOUBT_NAMES_HEADER, MOST_CARRIED, doubtNamesMember, parseDoubtName } from '../../format/doubts.ts'
import type { Bundle } from '../open.ts'

/** Largest content of the member: as many names as there may be, each character escaped. */
const MAX_BYTES = SOURCES.length * Object.keys(DOUBTS).length * MOST_CARRIED.names * MOST_CARRIED.characters * 6

/** Names of doubtful items by their source and kind. */
export type CarriedNames = ReadonlyMap<SourceName, Readonly<Partial<Record<Doubt, readonly string[]>>>>

/** Reads the names of what bundles carry as doubtful, each once. Throws `bundle`. */
export async function readDoubtNames(bundles: readonly Pick<Bundle, 'manifest' | 'stream'>[]): Promise<CarriedNames> {
  const found = new Map<SourceName, Partial<Record<Doubt, string[]>>>()
  for (const bundle of bundles) {
    const name = doubtNamesMember(bundle.manifest)
    for (const [at, line] of name === null ? [] : (await linesOf(bundle, name)).entries()) {
      const item = parseDoubtName(jsonOf(line, `${name}:${at + 2}`), `${name}:${at + 2}`)
      if (item === null) continue
      const [source, kind, text] = item
      const kinds = found.get(source) ?? {}
      found.set(source, kinds)
      kinds[kind] = [...new Set([...(kinds[kind] ?? []), text])].slice(0, MOST_CARRIED.names)
    }
  }
  return found
}

async function linesOf({ stream }: Pick<Bundle, 'stream'>, name: string): Promise<string[]> {
  const chunks: Buffer[] = []
  for await (const chunk of stream(name)) chunks.push(Buffer.from(chunk)) // each is valid until the next one alone
  const [header = '', ...lines] = unpacked(Buffer.concat(chunks), name).split('\n')
  if (header !== DOUBT_NAMES_HEADER) throw new MirrorError('bundle', `${name}:1 is not the header of doubtful items`)
  return lines.filter((line) => line !== '')
}

function unpacked(bytes: Buffer, name: string): string {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_BYTES }).toString()
  } catch (cause) {
    throw new MirrorError('bundle', `${name} cannot be read`, { cause })
  }
}

function jsonOf(line: string, place: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new MirrorError('bundle', `${place} is not JSON`, { cause })
  }
}
