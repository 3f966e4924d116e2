import { promisify } from 'node:util'
import { crc32, gunzip, gunzipSync } from 'node:zlib'
import { sha256Of } from '../../base/digest.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { FRAME, deflate, trailerSize, writeGzipMember } from '../../base/gzip/member.ts'
import { inflatedPieces } from '../../base/gzip/pieces.ts'

/** Builds a gzip member around a raw deflate stream: no recompression. Sizes in bytes of the content. */
export function gzipMember(deflated: Uint8Array, contentCrc32: number, contentSize: number): Buffer {
  const member = Buffer.allocUnsafe(deflated.length + FRAME)
  writeGzipMember(member, 0, deflated, contentCrc32, contentSize)
  return member
}

/** Returns the content of a stored member. Throws `corrupt` if it does not inflate to exactly `size` bytes. */
export function contentOf(member: Buffer, size: number): Buffer {
  try {
    return checked(gunzipSync(member, boundsOf(size)), size)
  } catch (error) {
    throw damaged(error)
  }
}

/** Returns the content of a stored member, which has this digest; null: there is none, or it is damaged. */
export function soundContent(stored: { body: Buffer | null; size: number; sha256: Buffer }): Buffer | null {
  if (stored.body === null) return null
  try {
    const content = contentOf(stored.body, stored.size)
    return sha256Of(content).equals(stored.sha256) ? content : null
  } catch {
    return null // it does not inflate
  }
}

function damaged(error: unknown): MirrorError {
  const text = `stored content is damaged (${messageOf(error)}): "patchmirror doctor --data --repair" fetches it again`
  return new MirrorError('corrupt', text, { cause: error })
}

const inflate = promisify<Buffer, ReturnType<typeof boundsOf>, Buffer>(gunzip)

/** Works as `contentOf`, in the thread pool; for large members. */
export async function contentInPool(member: Buffer, size: number): Promise<Buffer> {
  try {
    return checked(await inflate(member, boundsOf(size)), size)
  } catch (error) {
    throw damaged(error)
  }
}

/** Works as `contentOf`, in pieces that are valid until the next one is requested; the end tells whether all are sound. */
export async function* contentPieces(member: Buffer, size: number): AsyncGenerator<Buffer> {
  let length = 0
  for await (const piece of inflatedPieces(member)) {
    length += piece.length
    if (length > size) break
    yield piece
  }
  checkSize(length, size)
}

/** Resolves when a stored member inflates to content of this size, with its CRC-32; rejects when it does not. */
export async function checkMember(member: Buffer, size: number): Promise<void> {
  for await (const _piece of contentPieces(member, size));
}

function boundsOf(size: number): { chunkSize: number; maxOutputLength: number } {
  return { chunkSize: Math.max(64, size + 16), maxOutputLength: size + 16 }
}

function checked(content: Buffer, size: number): Buffer {
  checkSize(content.length, size)
  return content
}

function checkSize(length: number, size: number): void {
  if (length !== size) throw new Error(`stored body inflates to ${length} bytes, not ${size}`)
}

/** Builds a member around content. */
export function packContent(content: Uint8Array, compress: (content: Uint8Array) => Uint8Array = deflate): Buffer {
  return gzipMember(compress(content), crc32(content), content.length)
}

/**
 * Bytes up to which digests, keys and signatures are stored without compression, which saves nothing of them: zlib takes
 * 30 µs to begin.
 */
const UNPACKED_BYTES = 512

/** Builds a member around small content that hardly compresses, as it is; null: it is not small. */
export function smallMember(content: Uint8Array): Buffer | null {
  return content.length <= UNPACKED_BYTES ? packContent(content, storedBlock) : null
}

/** Returns a raw deflate stream of one block without compression (RFC 1951, 3.2.4). */
function storedBlock(content: Uint8Array): Buffer {
  const { length } = content
  const block = Buffer.allocUnsafe(5 + length)
  block[0] = 1 // the last block, stored
  block.writeUInt16LE(length, 1)
  block.writeUInt16LE(~length & 0xffff, 3)
  block.set(content, 5)
  return block
}

/**
 * Returns the member to store for a document: upstream's own gzip body if it is one plain member of exactly this content
 * (its size field agrees), else a newly built one.
 */
export function documentMember(content: Uint8Array, gzip: Buffer | null): Buffer {
  const isUsable = gzip !== null && trailerSize(gzip) === content.length
  return isUsable ? gzip : packContent(content)
}

/** Returns the content size recorded in a member, bytes. */
export function sizeOf(member: Buffer): number {
  return member.readUInt32LE(member.length - 4)
}
