import { crc32 } from 'node:zlib'
import AdmZip from 'adm-zip'
import { deflate } from '../../base/gzip/member.ts'
import { type ZipMember, createZipWriter } from '../../archive/zip/writer.ts'

/** Limits of an archive that adm-zip writes: its members are in memory, and it counts up to 65,535 of them. */
interface SmallLimits {
  /** Bytes of all contents together. */
  readonly bytes: number
  readonly members: number
}
const SMALL: SmallLimits = { bytes: 8 * 2 ** 20, members: 10_000 }

const DOS_DATE_1980 = 0x21 << 16 // date and time, as all archives of this program have it
const MADE_ON_UNIX = (3 << 8) | 20 // adm-zip's default depends on the system
const MODE = 0o644
const isAscii = (name: string): boolean => Buffer.byteLength(name) === name.length
const NAMES = {
  efs: (name: string): boolean => !isAscii(name),
  encode: (name: string): Buffer => Buffer.from(name),
  decode: (bytes: Uint8Array): string => Buffer.from(bytes).toString(),
}

/**
 * Creates an archive of complete contents: adm-zip writes a small one in memory, `createZipWriter` streams one that
 * exceeds `limits`. Both give the same bytes, so the digest of an archive does not depend on which of them wrote it. Nothing may be
 * added after `finish`.
 */
export function createContentZip(sink: (chunk: Uint8Array) => void, limits: SmallLimits = SMALL) {
  const waiting: { name: string; content: Buffer }[] = []
  let bytes = 0
  let stream: ReturnType<typeof createZipWriter> | null = null
  const streamed = (): ReturnType<typeof createZipWriter> => {
    stream ??= createZipWriter(sink)
    for (const { name, content } of waiting.splice(0)) {
      const { length: size } = content
      stream.add({ name, crc32: crc32(content), size, deflated: deflate(content) })
    }
    return stream
  }
  return {
    /** Adds a member. The name is a normalized relative path that was not added before, the content is not empty. */
    add(name: string, content: Buffer): void {
      waiting.push({ name, content })
      bytes += content.length
      if (stream !== null || bytes > limits.bytes || waiting.length > limits.members) streamed()
    },
    /** Adds a member of an archive that was made so before; its stream is copied. The archive is streamed from there on. */
    adopt: (member: ZipMember): void => void streamed().add(member),
    finish(): void {
      if (stream === null) sink(zipInMemory(waiting))
      else stream.finish()
    },
  }
}

function zipInMemory(members: readonly { name: string; content: Buffer }[]): Buffer {
  const zip = new AdmZip({ noSort: true, decoder: NAMES })
  for (const { name, content } of members) {
    const { header, entryName } = zip.addFile(name, content, '', MODE)
    if (entryName !== name) throw new Error(`adm-zip stores ${name} as ${entryName}`)
    header.made = MADE_ON_UNIX
    header.timeval = DOS_DATE_1980
  }
  return zip.toBuffer()
}
