import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type VexInfo, readVexInfo } from '../../store/generations.ts'
import { wholeDirectory } from '../../../../archive/zip/directory-bytes.ts'
import { END_SPAN, locateDirectory, parseDirectory } from '../../../../archive/zip/directory.ts'
import { packedBytes, verifyDeflated } from '../../../../archive/zip/member.ts'
import type { ZipMember } from '../../../../archive/zip/writer.ts'
import { type FileDraft, type MadeFile, createPieces, isSoundFile } from '../files.ts'
import type { Claim } from './claims.ts'
import type { VexOrder, VexSource } from './merge.ts'

/** A document that a generation was made of. Its number stays while generations are made of each other. */
export interface MadeDocument extends VexSource {
  readonly number: number
  readonly digest: string
  /** Beginnings of its package URLs that are too long for a repository. */
  readonly skipped: readonly string[]
}

/** A package of a generation: the numbers of its documents in the order of their digests, and where its order is, if it is merged. */
type MadePackage = readonly [id: string, numbers: readonly number[], at?: number, bytes?: number]

/** The last line of the file beside an archive: what the archive was made of. Before it are the orders of merged documents. */
export interface Sources {
  /** The rules by which it was made. */
  readonly form: string
  /** Name of the archive. */
  readonly archive: string
  readonly documents: readonly MadeDocument[]
  readonly packages: readonly MadePackage[]
  /** What the documents of tags say, by their digests. */
  readonly claims: Readonly<Record<string, readonly Claim[]>>
}

/** A generation that another one is made of. */
export interface MadeRepository {
  /** By their digests. */
  readonly documents: ReadonlyMap<string, MadeDocument>
  /** The documents of each package, by their numbers. */
  readonly packages: ReadonlyMap<string, MadePackage>
  /** What the documents of tags say, by their digests. */
  readonly claims: ReadonlyMap<string, readonly Claim[]>
  /** Whether the archive has a member of this name. */
  has(location: string): boolean
  /** A member's content is this long, bytes; 0 without such a member. */
  sizeOf(location: string): number
  /** A member as it is stored, valid until the next is read. Throws for one that is not there, or damaged. */
  readMember(location: string): ZipMember
  readContent(location: string): Buffer
  /** The order of a merged document, as it is stored. */
  readOrder(made: MadePackage): Buffer
  close(): void
}

/**
 * Opens what a generation was made of; null where this is not recorded, was made by other rules, or is not as it was published:
 * both files have the digests of their content as names, which are read to their end. Throws for what cannot be read.
 */
export function openMade(folder: string, form: string): MadeRepository | null {
  const info = readVexInfo(folder)
  if (info?.sources === undefined) return null
  if (![info.file, info.sources.file].every((file) => isSoundFile(folder, file))) return null
  const path = join(folder, info.sources.file)
  const last = lastLine(path, info.sources)
  const sources = JSON.parse(last.toString()) as Sources
  if (sources.form !== form || sources.archive !== info.file) return null
  const orders = createPieces(path)
  const archive = openArchive(folder, info)
  return {
    ...archive,
    documents: new Map(sources.documents.map((one) => [one.digest, one])),
    packages: new Map(sources.packages.map((one) => [one[0], one])),
    claims: new Map(Object.entries(sources.claims)),
    readOrder: ([, , at = 0, bytes = 0]) => orders.read(at, bytes),
    close() {
      orders.close()
      archive.close()
    },
  }
}

function lastLine(path: string, { size, last }: NonNullable<VexInfo['sources']>): Buffer {
  const bytes = Buffer.alloc(size - last)
  const fd = openSync(path, 'r')
  try {
    readSync(fd, bytes, 0, bytes.length, last)
  } finally {
    closeSync(fd)
  }
  return bytes
}

function openArchive(folder: string, { file, size }: VexInfo) {
  const pieces = createPieces(join(folder, file))
  const span = Math.min(size, END_SPAN)
  const location = locateDirectory(Buffer.from(pieces.read(size - span, span)), size)
  const entries = Buffer.from(pieces.read(location.offset, location.size))
  const directory = parseDirectory(wholeDirectory(entries), location)
  const numbers = new Map<string, number>()
  for (let i = 0; i < directory.count; i++) numbers.set(directory.entry(i).name, i)
  const read = (location: string) => {
    const i = numbers.get(location) ?? directory.count
    const entry = directory.entry(i)
    const region = pieces.read(entry.offset, directory.regionEnd(i) - entry.offset)
    const deflated = packedBytes(entry, region, Infinity)
    if ('refused' in deflated) throw new Error(`${location}: ${deflated.refused}`)
    return { entry, deflated }
  }
  return {
    has: (location: string) => numbers.has(location),
    sizeOf(location: string) {
      const i = numbers.get(location)
      return i === undefined ? 0 : directory.entry(i).size
    },
    readMember(location: string): ZipMember {
      const { entry, deflated } = read(location)
      return { name: location, crc32: entry.crc32, size: entry.size, deflated }
    },
    readContent(location: string): Buffer {
      const { entry, deflated } = read(location)
      const member = verifyDeflated(entry, deflated)
      if ('refused' in member) throw new Error(`${location}: ${member.refused}`)
      return member.content
    },
    close: () => pieces.close(),
  }
}

/** Writes what an archive is made of, beside it. */
export function createSources(file: FileDraft) {
  const places = new Map<string, readonly [at: number, bytes: number]>()
  let size = 0
  const write = (bytes: Buffer): void => {
    file.write(bytes)
    size += bytes.length
  }
  return {
    /** Adds the order of a package's merged document. */
    add(id: string, order: VexOrder | Buffer): void {
      const line = Buffer.isBuffer(order) ? order : Buffer.from(`${JSON.stringify(order)}\n`)
      places.set(id, [size, line.length])
      write(line)
    },
    finish(sources: Sources): MadeFile & { readonly last: number } {
      const packages = sources.packages.map(([id, numbers]) => [...[id, numbers], ...(places.get(id) ?? [])])
      const last = size
      write(Buffer.from(`${JSON.stringify({ ...sources, packages })}\n`))
      return { ...file.finish(), last }
    },
  }
}
