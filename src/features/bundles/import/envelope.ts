import { MirrorError, messageOf } from '../../../base/errors.ts'
import { wholeDirectory } from '../../../archive/zip/directory-bytes.ts'
import { END_SPAN, parseDirectory } from '../../../archive/zip/directory.ts'
import { type ByteSource, checkedLocation } from '../../../archive/zip/reader.ts'
import { type Layout, MANIFEST_NAME, localHeader, signerOf } from '../format/layout.ts'
import { CAPS } from '../format/manifest.ts'
import { bundleRefusal } from '../format/refusal.ts'
import { magic } from '../thin/format.ts'

/** The content of a bundle before its signature is verified. */
export interface Claims {
  manifest: Buffer
  /** By the id of the claimed signing key, in file order. */
  signatures: Map<string, Buffer>
}

const CHUNK = 1 << 20
const SIGNATURE_BYTES = 64

/** Reads manifest and signatures by the zip's directory. Throws `archive` or `bundle`. */
export async function readClaims(source: ByteSource): Promise<Claims> {
  const span = Math.min(source.size, END_SPAN)
  const limits = { maxMemberBytes: CAPS.manifestBytes, maxDirectoryBytes: CAPS.manifestBytes }
  const tail = Buffer.from(await source.read(source.size - span, span))
  const head = await source.read(0, Math.min(source.size, magic().length))
  const location = located({ head, tail }, source.size, () => checkedLocation(tail, source.size, limits))
  const entries = Buffer.from(await source.read(location.offset, location.size))
  const directory = parseDirectory(wholeDirectory(entries), location)
  const signatures = new Map<string, Buffer>()
  for (let i = directory.count - 1; i >= 0; i--) {
    const { name, offset, size, compressedSize, method } = directory.entry(i)
    const signer = signerOf(name)
    if (name !== MANIFEST_NAME && signer === null) break
    const most = signer === null ? CAPS.manifestBytes : SIGNATURE_BYTES
    if (method !== 0 || size !== compressedSize || size > most)
      throw new MirrorError(
        'bundle',
        `its ${name} is not stored as the format requires; a backup is for "patchmirror restore FILE"`,
      )
    const bytes = Buffer.from(await source.read(offset + 30 + name.length, size))
    if (signer === null) return { manifest: bytes, signatures: reversed(signatures) }
    signatures.set(signer, bytes)
    if (signatures.size > CAPS.keys) break
  }
  throw new MirrorError('bundle', 'it is a zip, but not a bundle: there is no manifest.json at its end')
}

/** How a bundle begins: with the header of its first member. */
const ZIP_HEAD = Buffer.from('PK\x03\x04', 'latin1')

const GZIP_HEAD = Buffer.from([0x1f, 0x8b])

/** First and last bytes of a file. */
interface Ends {
  head: Buffer
  tail: Buffer
}

/** Distinguishes a file without an end record, which may be incomplete, from a damaged one and from one that is no zip. */
function located<T>({ head, tail }: Ends, size: number, work: () => T): T {
  try {
    return work()
  } catch (error) {
    // Space that is reserved before the bytes arrive is zeros.
    const mayBeZip = head.subarray(0, ZIP_HEAD.length).every((byte, at) => byte === 0 || byte === ZIP_HEAD[at])
    const why = mayBeZip ? whyDamaged(tail, size) : whyNoZip(head)
    if (why !== null) throw new MirrorError('bundle', why, { cause: error })
    throw bundleRefusal({ kind: 'incomplete' }, `${messageOf(error)}: copy it again`)
  }
}

function whyNoZip(head: Buffer): string {
  if (head.equals(magic().subarray(0, head.length)))
    return 'it is a thin bundle, which goes alone and whole: "patchmirror bundle import FILE" on the target mirror, or its inbox'
  return head.subarray(0, GZIP_HEAD.length).equals(GZIP_HEAD)
    ? 'it is gzip, as a need file is, which is for "patchmirror bundle export OUT --for FILE" on the source mirror'
    : 'it is not a zip: bundles begin with PK'
}

const END_RECORD = Buffer.from('PK\x05\x06', 'latin1')
const CENTRAL_RECORD = Buffer.from('PK\x01\x02', 'latin1')
const END_BYTES = 22
const CENTRAL_BYTES = 46

/** Returns why a file without a valid end is damaged, not truncated; null if it may be truncated. */
function whyDamaged(tail: Buffer, size: number): string | null {
  const end = tail.lastIndexOf(END_RECORD)
  if (end >= 0 && end + END_BYTES <= tail.length) {
    const behind = tail.length - end - END_BYTES
    const at = size - tail.length + end
    const isItsOwn = tail.readUInt32LE(end + 12) + tail.readUInt32LE(end + 16) === at
    if (behind > 0 && isItsOwn) return `it has ${behind} bytes after its end: copy it again`
    if (behind === 0) return 'its zip directory does not end where it should: bytes were added or lost'
  }
  // The last entry of the directory is a signature's: everything after it is the end record.
  const last = tail.lastIndexOf(CENTRAL_RECORD)
  if (last < 0 || last + CENTRAL_BYTES > tail.length) return null
  const name = tail.toString('latin1', last + CENTRAL_BYTES, last + CENTRAL_BYTES + tail.readUInt16LE(last + 28))
  const left = tail.length - last - CENTRAL_BYTES - name.length - tail.readUInt16LE(last + 30)
  const isEnd = signerOf(name) !== null && left >= END_BYTES && tail[tail.length - left] !== 0
  return isEnd && tail.toString('latin1', tail.length - left, tail.length - left + 4) !== 'PK\x06\x06'
    ? 'the record at its end is damaged: copy it again'
    : null
}

function reversed(map: Map<string, Buffer>): Map<string, Buffer> {
  return new Map([...map].reverse())
}

/**
 * Compares size, directory, end records and the headers of the last `checked` members with those that a writer creates
 * for the same members. Throws `bundle`: something was added, removed, moved or changed.
 */
export async function refuseOtherLayout(source: ByteSource, layout: Layout, checked: number): Promise<void> {
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

/** Throws `bundle` if a member's local header differs from the one that a writer creates. */
export async function refuseOtherHeader(source: ByteSource, placed: Layout['placed'][number]): Promise<void> {
  const { offset, localBytes, name } = placed.fields
  if (!localHeader(placed).equals(await source.read(offset, localBytes)))
    throw new MirrorError('bundle', `the header of ${name} is not what its manifest says`)
}

/** Yields a range in chunks of 1 MiB, reading the next one meanwhile. A chunk is valid until the next. */
export async function* eachChunk(source: ByteSource, from: number, to: number): AsyncGenerator<Buffer> {
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
    yield chunk
  }
}
