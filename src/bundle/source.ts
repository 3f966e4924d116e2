import { MirrorError, messageOf } from '../errors.ts'
import { END_SPAN } from '../zip/directory.ts'
import { parseDirectory } from '../zip/directory.ts'
import { type ByteSource, checkedLocation } from '../zip/reader.ts'
import { type Layout, MANIFEST_NAME, localHeader, signerOf } from './layout.ts'
import { CAPS } from './manifest.ts'
import { refusal } from './refusals.ts'

/** What a bundle says before anything of it is believed. */
export interface Claims {
  manifest: Buffer
  /** By the id of the key that is said to have made them, in the order in which they lie. */
  signatures: Map<string, Buffer>
}

const CHUNK = 1 << 20
const SIGNATURE_BYTES = 64

/** Finds manifest and signatures by the zip's directory. Throws `archive` or `bundle`. */
export async function readClaims(source: ByteSource): Promise<Claims> {
  const span = Math.min(source.size, END_SPAN)
  const limits = { maxMemberBytes: CAPS.manifestBytes, maxDirectoryBytes: CAPS.manifestBytes }
  const tail = Buffer.from(await source.read(source.size - span, span))
  const location = located(() => checkedLocation(tail, source.size, limits))
  const directory = parseDirectory(
    Buffer.from(await source.read(location.offset, location.size)),
    location,
  )
  const signatures = new Map<string, Buffer>()
  for (let i = directory.count - 1; i >= 0; i--) {
    const { name, offset, size, compressedSize, method } = directory.entry(i)
    const signer = signerOf(name)
    if (name !== MANIFEST_NAME && signer === null) break
    const most = signer === null ? CAPS.manifestBytes : SIGNATURE_BYTES
    if (method !== 0 || size !== compressedSize || size > most)
      throw new MirrorError('bundle', `its ${name} is not stored as it has to be`)
    const bytes = Buffer.from(await source.read(offset + 30 + name.length, size))
    if (signer === null) return { manifest: bytes, signatures: reversed(signatures) }
    signatures.set(signer, bytes)
    if (signatures.size > CAPS.keys) break
  }
  throw new MirrorError(
    'bundle',
    'it is a zip, but no bundle: there is no manifest.json at its end',
  )
}

/** Without a sound end it is no bundle, or not all of one is there yet. */
function located<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw refusal({ kind: 'incomplete' }, messageOf(error))
  }
}

function reversed(map: Map<string, Buffer>): Map<string, Buffer> {
  return new Map([...map].reverse())
}

/**
 * Compares size, directory, end records and the headers of the last `checked` members with what a writer makes of the
 * same members. Throws `bundle`: something was added, taken away, moved or changed.
 */
export async function refuseOtherLayout(
  source: ByteSource,
  layout: Layout,
  checked: number,
): Promise<void> {
  if (source.size !== layout.size)
    throw new MirrorError(
      'bundle',
      `it has ${source.size} bytes and its manifest makes ${layout.size}: something was added or taken away`,
    )
  let at = layout.directoryAt
  for (const piece of layout.tail()) {
    if (!piece.equals(await source.read(at, piece.length)))
      throw new MirrorError('bundle', 'its zip directory is not what its manifest says')
    at += piece.length
  }
  for (const placed of layout.placed.slice(-checked)) await refuseOtherHeader(source, placed)
}

/** Throws `bundle` when a member's local header is not the one that a writer makes. */
export async function refuseOtherHeader(
  source: ByteSource,
  placed: Layout['placed'][number],
): Promise<void> {
  const { offset, localBytes, name } = placed.fields
  if (!localHeader(placed).equals(await source.read(offset, localBytes)))
    throw new MirrorError('bundle', `the header of ${name} is not what its manifest says`)
}

/** Reads in chunks of 1 MiB, the next on its way while `use` has one. Chunks are valid during the call. */
export async function readThrough(
  source: ByteSource,
  from: number,
  to: number,
  use: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  const length = Math.min(CHUNK, to - from)
  const buffers = [Buffer.allocUnsafe(length), Buffer.allocUnsafe(to - from > CHUNK ? CHUNK : 0)]
  const read = (at: number, i: number): Promise<Buffer> | null => {
    if (at >= to) return null
    const next = source.read(at, Math.min(CHUNK, to - at), buffers[i % 2])
    next.catch(() => undefined) // it is awaited below
    return next
  }
  let next = read(from, 0)
  for (let i = 0, at = from; next !== null; i++) {
    const chunk = await next
    at += chunk.length
    next = read(at, i + 1)
    await use(chunk)
  }
}
