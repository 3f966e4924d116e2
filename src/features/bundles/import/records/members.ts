import { sha256Hex } from '../../../../base/digest.ts'
import { MirrorError } from '../../../../base/errors.ts'
import type { RecordValue } from '../../../../store/replication/rows.ts'
import type { Directory, ZipEntry } from '../../../../archive/zip/directory.ts'
import { type Content, readMember } from '../../../../archive/zip/member.ts'
import { openSource } from '../../../../archive/zip/reader.ts'
import type { ByteSource } from '../../../../archive/zip/reader.ts'
import type { Manifest } from '../../format/manifest.ts'
import type { Contents } from '../members.ts'

/** Limits for an archive in a bundle: a record is a few kilobytes. */
export const ARCHIVE_LIMITS = { maxMemberBytes: 2 ** 29 }
const ENDING = '.json'
const WINDOW = 1 << 20
/** Bytes of a local header with the longest possible name and extra field. */
const MAX_HEADER = 30 + 2 * 0xffff

/** Returns the name of the member with the bundle's records. */
export function archiveName({ kind }: Pick<Manifest, 'kind'>): string {
  return kind === 'full' ? 'osv/all.zip' : 'osv/changed.zip'
}

/** A member of the bundle's archive, not verified. */
export interface RecordMember {
  readonly entry: ZipEntry
  /** From its local header up to the next member, at most. */
  readonly region: Buffer
}

/** A bundle, or as much of it as records need. */
export interface RecordSource extends Pick<Contents, 'source'> {
  readonly manifest: Pick<Manifest, 'kind'>
}

/** Creates access to the archive of a bundle, which is opened at the first use, and read about 1 MiB at a time. */
export function createRecordMembers(bundle: RecordSource) {
  const name = archiveName(bundle.manifest)
  let opened: { source: ByteSource; directory: Directory } | null = null
  let next = 0
  const buffer = Buffer.allocUnsafe(WINDOW)
  let window: { from: number; bytes: Buffer } = { from: 0, bytes: buffer.subarray(0, 0) }
  const open = async (): Promise<NonNullable<typeof opened>> => {
    const source = bundle.source(name)
    const { directory } = await openSource(source, ARCHIVE_LIMITS)
    return { source, directory }
  }
  const regionOf = async (source: ByteSource, from: number, end: number): Promise<Buffer> => {
    if (from < window.from || end > window.from + window.bytes.length) {
      const length = Math.max(end - from, Math.min(WINDOW, source.size - from))
      window = { from, bytes: await source.read(from, length, buffer) }
    }
    return window.bytes.subarray(from - window.from, end - window.from)
  }
  return {
    /**
     * Returns the member of a record, valid until the next call; passes over the members before it. Throws `bundle` if
     * there is none.
     */
    async find(id: string): Promise<RecordMember> {
      opened ??= await open()
      const { source, directory } = opened
      for (; next < directory.count; next++) {
        const entry = directory.entry(next)
        if (entry.name !== id + ENDING) continue
        const { offset, compressedSize } = entry
        const end = Math.min(directory.regionEnd(next++), offset + MAX_HEADER + compressedSize)
        if (end - offset > ARCHIVE_LIMITS.maxMemberBytes + WINDOW)
          throw refused(bundle.manifest, id, `its ${end - offset} bytes are over the cap`)
        return { entry, region: await regionOf(source, offset, end) }
      }
      throw new MirrorError('bundle', `${name} does not contain the record ${id}`)
    },
  }
}

/** Returns the error for a member that cannot be read. */
export function refused(manifest: Pick<Manifest, 'kind'>, id: string, why: string): MirrorError {
  return new MirrorError('bundle', `record ${id} in ${archiveName(manifest)}: ${why}`)
}

/** Returns the verified content of a record, and its deflate stream. Throws `bundle` if they are not its row's. */
export function readRecord(
  manifest: Pick<Manifest, 'kind'>,
  { key, crc32, size, sha256 }: RecordValue,
  { entry, region }: RecordMember,
): Content {
  const member = readMember(entry, region, ARCHIVE_LIMITS.maxMemberBytes)
  if ('refused' in member) throw refused(manifest, key, member.refused)
  const isRow = member.content.length === size && entry.crc32 === crc32
  if (isRow && sha256Hex(member.content) === sha256) return member
  throw new MirrorError('bundle', `record ${key} does not have the bytes that its row names`)
}
