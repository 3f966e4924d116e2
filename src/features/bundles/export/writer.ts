import { createHash } from 'node:crypto'
import { crc32, deflateRawSync } from 'node:zlib'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { HeaderMember } from '../../../archive/zip/headers.ts'
import type { SigningKey } from '../format/keys.ts'
import {
  MANIFEST_NAME,
  STORED_METHOD,
  zipHeaderOf,
  hex,
  layOut,
  localHeader,
  place,
  signatureName,
  storedHeader,
} from '../format/layout.ts'
import { type Manifest, type ManifestHead, type BundleMember, CAPS } from '../format/manifest.ts'
import { type TargetOptions, type OutputFile, createTarget } from './output-file.ts'

/** A bundle that is being written. A caller that does not finish it must discard it. */
export type BundleWriter = ReturnType<typeof createBundleWriter>

/** A bundle without its final name. */
interface CompleteBundle {
  readonly manifest: Manifest
  readonly bytes: number
  readonly drafts: readonly string[]
}

type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

/** Starts a bundle. Throws `usage` if the file exists and must not be replaced. */
export function createBundleWriter(path: string, options: TargetOptions) {
  const target = createTarget(path, options)
  const output = createOutput(target)
  const members: BundleMember[] = []

  const addRaw = async (header: HeaderMember, bytes: Uint8Array): Promise<void> => {
    await output.append(localHeader(place(header, output.position())))
    await output.append(bytes)
  }
  return {
    /** Adds a stored member: exactly `size` bytes, or, with null, all chunks, under 4 GiB. Throws `proof` if the size differs. */
    async addStored(name: string, size: number | null, chunks: Chunks): Promise<void> {
      const at = output.position()
      const headerFor = (bytes: number, crc: number): Buffer =>
        localHeader(place({ name, method: STORED_METHOD, crc32: crc, size: bytes, packed: bytes }, at))
      const draft = headerFor(size ?? 0, 0)
      await output.append(draft)
      const sum = await pour(output.append, chunks)
      const header = headerFor(sum.size, sum.crc32)
      if (sum.size !== (size ?? sum.size) || header.length !== draft.length)
        throw new MirrorError('proof', `${name} has ${sum.size} bytes, not ${size ?? 'under 4 GiB'}`)
      await output.patch(at, header)
      const { crc32: crc, sha256 } = sum
      members.push({ name, method: 'store', size: sum.size, crc32: hex(crc), sha256 })
    },
    /** Adds a deflated member. */
    async addDeflated(name: string, bytes: Uint8Array): Promise<void> {
      const packed = deflateRawSync(bytes)
      const member: BundleMember = {
        name,
        method: 'deflate',
        size: bytes.length,
        crc32: hex(crc32(bytes)),
        sha256: sha256Hex(bytes),
        packed: packed.length,
        packedSha256: sha256Hex(packed),
      }
      await addRaw(zipHeaderOf(member), packed)
      members.push(member)
    },
    /** Bytes so far. */
    size: (): number => output.position(),
    /** Writes manifest and signatures and syncs all files. Returns the manifest and the files' temporary names. */
    async complete(head: ManifestHead, keys: readonly SigningKey[]): Promise<CompleteBundle> {
      const manifest: Manifest = { ...head, keys: keys.map(({ id }) => id), members }
      const text = manifestBytes(manifest)
      const added = [storedHeader(MANIFEST_NAME, text)]
      await addRaw(storedHeader(MANIFEST_NAME, text), text)
      for (const key of keys) {
        const signature = key.sign(text)
        const header = storedHeader(signatureName(key.id), signature)
        added.push(header)
        await addRaw(header, signature)
      }
      for (const piece of layOut([...members.map(zipHeaderOf), ...added]).tail()) await output.append(piece)
      await output.flush()
      return { manifest, bytes: output.position(), drafts: await target.settle() }
    },
    /** Gives the files of a complete bundle their names and returns them. */
    publish: (): Promise<string[]> => target.publish(),
    discard: (): Promise<void> => target.discard(),
  }
}

/** Formats the manifest with one line per member, so that people can read it and tools can compare it. */
function manifestBytes({ members, ...rest }: Manifest): Buffer {
  if (members.length > CAPS.members)
    throw new MirrorError('bundle', `${members.length} members are more than a bundle can have`)
  const head = JSON.stringify(rest, null, 2).replace(/\n\}$/, '')
  const lines = members.map((member) => `    ${JSON.stringify(member)}`)
  const bytes = Buffer.from(`${head},\n  "members": [\n${lines.join(',\n')}\n  ]\n}\n`)
  if (bytes.length <= CAPS.manifestBytes) return bytes
  throw new MirrorError('bundle', `a manifest of ${bytes.length} bytes is over the limit`)
}

async function pour(
  append: (bytes: Uint8Array) => Promise<void>,
  chunks: Chunks,
): Promise<{ size: number; crc32: number; sha256: string }> {
  const hash = createHash('sha256')
  let size = 0
  let crc = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    crc = crc32(chunk, crc)
    size += chunk.length
    await append(chunk)
  }
  return { size, crc32: crc, sha256: hash.digest('hex') }
}

/** Sequential output into a target. */
interface Output {
  /** Position of the next byte. */
  position(): number
  readonly append: (bytes: Uint8Array) => Promise<void>
  /** Overwrites bytes that were appended before. */
  patch(position: number, bytes: Uint8Array): Promise<void>
  flush(): Promise<void>
}

const CHUNK = 1 << 20

/** Gathers writes into chunks of 1 MiB; one is written to disk while the next is filled. */
function createOutput(target: OutputFile): Output {
  let chunk = Buffer.allocUnsafe(CHUNK)
  let spare = Buffer.allocUnsafe(CHUNK)
  let start = 0
  let used = 0
  let underWay: Promise<void> = Promise.resolve()

  const send = async (): Promise<void> => {
    await underWay
    if (used === 0) return
    underWay = target.write(start, chunk.subarray(0, used))
    underWay.catch(() => undefined) // it is awaited by the next call
    start += used
    used = 0
    ;[chunk, spare] = [spare, chunk]
  }
  const flush = async (): Promise<void> => {
    await send()
    await underWay
  }
  return {
    position: () => start + used,
    async append(bytes) {
      for (let from = 0; from < bytes.length;) {
        if (used === CHUNK) await send()
        const part = bytes.subarray(from, from + CHUNK - used)
        chunk.set(part, used)
        used += part.length
        from += part.length
      }
    },
    async patch(position, bytes) {
      if (position >= start) {
        chunk.set(bytes, position - start)
        return
      }
      await flush()
      await target.write(position, bytes)
    },
    flush,
  }
}
