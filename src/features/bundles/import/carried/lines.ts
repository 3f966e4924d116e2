import { gunzipSync } from 'node:zlib'
import { MirrorError } from '../../../../base/errors.ts'
import type { Bundle } from '../open.ts'

/** A line of what a bundle carries beside its state. */
interface CarriedLine {
  readonly value: unknown
  /** For messages. */
  readonly place: string
}

/** Reads a member of such lines, each of them JSON, behind its header. Throws `bundle`. */
export async function readCarriedLines(
  { stream }: Pick<Bundle, 'stream'>,
  name: string,
  { header, maxBytes }: { readonly header: string; readonly maxBytes: number },
): Promise<CarriedLine[]> {
  const chunks: Buffer[] = []
  for await (const chunk of stream(name)) chunks.push(Buffer.from(chunk)) // each is valid until the next one alone
  const [first = '', ...lines] = unpacked(Buffer.concat(chunks), name, maxBytes).split('\n')
  if (first !== header) throw new MirrorError('bundle', `${name}:1 is not the header ${header}`)
  return lines.flatMap((line, at) => {
    const place = `${name}:${at + 2}`
    return line === '' ? [] : [{ value: jsonOf(line, place), place }]
  })
}

function unpacked(bytes: Buffer, name: string, maxOutputLength: number): string {
  try {
    return gunzipSync(bytes, { maxOutputLength }).toString()
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
