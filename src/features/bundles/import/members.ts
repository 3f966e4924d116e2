import { createHash } from 'node:crypto'
import { crc32, inflateRawSync } from 'node:zlib'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError, systemCode } from '../../../base/errors.ts'
import type { ByteSource } from '../../../archive/zip/reader.ts'
import { type Layout, type Placed, hex } from '../format/layout.ts'
import type { DeflatedMember, Manifest, BundleMember, StoredMember } from '../format/manifest.ts'
import { eachChunk, refuseOtherHeader } from './envelope.ts'

/** The data members of an open bundle. */
export type Contents = ReturnType<typeof createContents>

const MAX_READ = 512_000_000

interface Found<M extends BundleMember> {
  member: M
  place: Placed
}

/** Creates access to the members of a bundle whose layout was verified. */
export function createContents(
  source: ByteSource,
  manifest: Pick<Manifest, 'members'>,
  { placed }: Pick<Layout, 'placed'>,
) {
  const byName = new Map(manifest.members.map(({ name }, i) => [name, i]))
  const find = (name: string): Found<BundleMember> => {
    const i = byName.get(name) ?? -1
    const member = manifest.members[i]
    const place = placed[i]
    if (member !== undefined && place !== undefined) return { member, place }
    throw new MirrorError('bundle', `it does not contain ${name}`)
  }
  const findStored = (name: string): Found<StoredMember> => {
    const { member, place } = find(name)
    if (member.method === 'store') return { member, place }
    throw new MirrorError('bundle', `${name} is compressed, not stored uncompressed`)
  }
  return {
    /**
     * Reads every member, or those for which `isWanted` returns true, to its end against the manifest. `progress` gets the
     * bytes so far, without headers. Throws `bundle`.
     */
    async verify(progress: (done: number) => void, isWanted: (name: string) => boolean = () => true): Promise<void> {
      let done = 0
      for (const { name } of manifest.members) {
        if (!isWanted(name)) continue
        const { member, place } = find(name)
        await refuseOtherHeader(source, place)
        if (member.method === 'deflate') {
          await readWhole(source, { member, place })
          done += place.end - place.dataAt
        } else for await (const chunk of verifiedChunks(source, { member, place })) progress((done += chunk.length))
      }
    },
    /**
     * Returns a complete member, inflated and verified. For packs of rows; throws `bundle` over the limit or if it is
     * missing.
     */
    read: async (name: string): Promise<Buffer> => readWhole(source, find(name)),
    /**
     * Yields a stored member in pieces, each valid until the next; throws `bundle` at its end if it does not match the
     * manifest.
     */
    stream: (name: string): AsyncIterable<Buffer> => verifiedChunks(source, findStored(name)),
    /** Does the same by size and CRC-32 alone, for a caller that compares a digest of the content. */
    streamContent: (name: string): AsyncIterable<Buffer> => verifiedChunks(source, findStored(name), false),
    /** Returns a stored member as a source. Its bytes are not verified here. Throws `bundle` if it is missing. */
    source: (name: string): ByteSource => {
      const { member, place } = findStored(name)
      return within(source, member, place.dataAt)
    },
  }
}

async function readWhole(source: ByteSource, { member, place: { dataAt, end } }: Found<BundleMember>): Promise<Buffer> {
  if (member.size > MAX_READ || end - dataAt > MAX_READ)
    throw new MirrorError('bundle', `${member.name} is too large to be read whole`)
  const bytes = await source.read(dataAt, end - dataAt)
  const content = member.method === 'deflate' ? inflate(member, bytes) : bytes
  refuseOther(member, content.length, crc32(content), sha256Hex(content))
  return content
}

async function* verifiedChunks(
  source: ByteSource,
  { member, place: { dataAt, end } }: Found<StoredMember>,
  hashes = true,
): AsyncGenerator<Buffer> {
  const hash = hashes ? createHash('sha256') : null
  let crc = 0
  for await (const chunk of eachChunk(source, dataAt, end)) {
    hash?.update(chunk)
    crc = crc32(chunk, crc)
    yield chunk
  }
  refuseOther(member, end - dataAt, crc, hash?.digest('hex') ?? member.sha256)
}

/** Returns a range of a source as a source of its own. */
function within(source: ByteSource, { name, size }: StoredMember, start: number): ByteSource {
  return {
    size,
    async read(position, length, into) {
      if (position < 0 || position + length > size)
        throw new MirrorError('archive', `${name} ends before byte ${position + length}`)
      return source.read(start + position, length, into)
    },
  }
}

function inflate(member: DeflatedMember, packed: Buffer): Buffer {
  if (sha256Hex(packed) !== member.packedSha256)
    throw new MirrorError('bundle', `${member.name} is damaged: copy it again`)
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, member.size) })
  } catch (error) {
    const bomb = systemCode(error) === 'ERR_BUFFER_TOO_LARGE'
    const what = bomb ? `inflates to more than its ${member.size} bytes` : 'does not inflate'
    throw new MirrorError('bundle', `${member.name} ${what}`, { cause: error })
  }
}

function refuseOther(member: BundleMember, size: number, crc: number, sha256: string): void {
  if (size !== member.size)
    throw new MirrorError('bundle', `${member.name} has ${size} bytes instead of ${member.size}`)
  if (sha256 !== member.sha256 || hex(crc) !== member.crc32)
    throw new MirrorError(
      'bundle',
      `${member.name} is damaged: its bytes are not those that were signed. Copy it again`,
    )
}
