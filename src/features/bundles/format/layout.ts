import { crc32 } from 'node:zlib'
import { MirrorError } from '../../../base/errors.ts'
import {
  type HeaderFields,
  type HeaderMember,
  endRecords,
  headerFields,
  writeCentralHeader,
  writeLocalHeader,
} from '../../../archive/zip/headers.ts'
import type { BundleMember } from './manifest.ts'

/** Name of the manifest in the zip. */
export const MANIFEST_NAME = 'manifest.json'
export const STORED_METHOD = 0
const DEFLATED = 8

/** Returns the name of the signature by a key. */
export function signatureName(keyId: string): string {
  return `signatures/${keyId}.sig`
}

/** Returns the id of the key whose signature has this name, or null. */
export function signerOf(name: string): string | null {
  return /^signatures\/([\da-f]{16})\.sig$/.exec(name)?.[1] ?? null
}

/** Returns a data member's fields for its zip headers. */
export function zipHeaderOf(member: BundleMember): HeaderMember {
  const { name, size, crc32 } = member
  const packed = member.method === 'deflate' ? member.packed : size
  const method = member.method === 'deflate' ? DEFLATED : STORED_METHOD
  return { name, method, crc32: Number.parseInt(crc32, 16), size, packed }
}

/** Returns a stored member's fields for its zip headers. */
export function storedHeader(name: string, bytes: Uint8Array): HeaderMember {
  return {
    name,
    method: STORED_METHOD,
    crc32: crc32(bytes),
    size: bytes.length,
    packed: bytes.length,
  }
}

/** Formats a CRC-32 as in the manifest. */
export function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0')
}

/** A member at its position. Its bytes are from `dataAt` to `end`. */
export interface Placed {
  readonly fields: HeaderFields
  readonly dataAt: number
  readonly end: number
}

/** Positions of everything in a zip with exactly these members. */
export type Layout = ReturnType<typeof layOut>

const PIECE = 1 << 18

/** Returns the positions of a member that begins at `offset`. */
export function place(member: HeaderMember, offset: number): Placed {
  const fields = headerFields(member, offset)
  const dataAt = offset + fields.localBytes
  return { fields, dataAt, end: dataAt + member.packed }
}

/** Places members one after the other, from byte 0. Throws `bundle` if the sizes are too large in total. */
export function layOut(members: Iterable<HeaderMember>) {
  const placed: Placed[] = []
  let at = 0
  let directoryBytes = 0
  for (const member of members) {
    const one = place(member, at)
    placed.push(one)
    at = one.end
    directoryBytes += one.fields.centralBytes
    if (!Number.isSafeInteger(at)) throw new MirrorError('bundle', 'its members are too large')
  }
  const directoryAt = at
  const end = endRecords(placed.length, directoryAt, directoryBytes)
  return {
    placed,
    directoryAt,
    /** Bytes of the whole file. */
    size: directoryAt + directoryBytes + end.length,
    /** Central directory and end records, in pieces. */
    *tail(): Generator<Buffer> {
      let piece = Buffer.allocUnsafe(PIECE)
      let used = 0
      for (const { fields } of placed) {
        if (used + fields.centralBytes > PIECE) {
          yield piece.subarray(0, used)
          piece = Buffer.allocUnsafe(PIECE)
          used = 0
        }
        writeCentralHeader(piece, used, fields)
        used += fields.centralBytes
      }
      if (used > 0) yield piece.subarray(0, used)
      yield end
    },
  }
}

/** Returns the local header of a placed member. */
export function localHeader({ fields }: Placed): Buffer {
  const header = Buffer.allocUnsafe(fields.localBytes)
  writeLocalHeader(header, 0, fields)
  return header
}
