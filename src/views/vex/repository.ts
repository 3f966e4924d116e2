import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Hex } from '../../core/digest.ts'
import { toIso } from '../../core/time.ts'
import type { VexDocument, VexReader } from '../../store/views/vex.ts'
import {
  type VexGeneration,
  type VexInfo,
  VEX_FILE,
  readVexInfo,
} from '../../store/views/generations.ts'
import { createContentZip } from '../../zip/small.ts'
import { createFileDraft } from '../files.ts'
import { changedAfter, generationName, makeGeneration } from '../generation.ts'
import { type OpenVex, type VexMerge, createMerge, readOpenVex } from './openvex.ts'
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../../core/files.ts'

/** What a VEX repository is made from. */
interface VexOptions {
  readonly dataDir: string
  readonly reads: VexReader
  /** The catalog's snapshot in `reads`; `asOf`: of the VEX in it, unix milliseconds. */
  readonly snapshot: { readonly id: string; readonly asOf: number }
  readonly rebuild?: boolean
  readonly pause: () => Promise<void>
}

/** What was made. */
export type VexReport = Pick<VexGeneration, 'documents' | 'packages'> & {
  /** Beginnings of package URLs that are too long for a repository. */
  readonly skipped?: readonly string[]
}

/** Largest document that is read, bytes: far above any real VEX document. */
const MAX_BYTES = 64 * 2 ** 20
/** Longest package URL of the repository, bytes: far above any real one, far below what a name in a zip archive may have. */
const MAX_ID_BYTES = 4096
/** Longest name of a folder or file in the repository, bytes: what file systems take when a client unpacks it. */
const MAX_NAME_BYTES = 255
/** Skipped package URLs that are reported, and the characters of each. */
const REPORTED = { count: 5, length: 200 }
/** Another number when the same documents make another repository. */
const RULES = '2'

/** The name of the generation that shows these documents. */
function vexName(documents: readonly VexDocument[]): string {
  return generationName('vex', [RULES, ...documents.map((one) => `${one.digest} ${one.changed}`)])
}

/**
 * Makes the VEX repository (VEX Repository Specification 0.1) of all mirrored OpenVEX documents; null when that is served
 * already. Throws as `makeGeneration`.
 */
export function makeVexRepository(options: VexOptions): Promise<VexReport | null> {
  const { dataDir, reads, snapshot, rebuild = false } = options
  const documents = reads.listVexDocuments().filter(({ size }) => size <= MAX_BYTES)
  const name = vexName(documents)
  const make = (folder: string, before: string | null) =>
    writeRepository(options, documents, {
      folder,
      // A document that goes takes its date along.
      changed: changedAfter(before, name, newestOf(documents), changedIn),
    })
  const { id, asOf } = snapshot
  return makeGeneration({ dataDir, kind: 'vex', name, snapshot: id, asOf, rebuild, make })
}

const changedIn = (folder: string): number | null => readVexInfo(folder)?.changed ?? null

function newestOf(documents: readonly VexDocument[]): number {
  return documents.reduce((latest, one) => Math.max(latest, one.changed), 0)
}

async function writeRepository(
  options: VexOptions,
  documents: readonly VexDocument[],
  { folder, changed }: { readonly folder: string; readonly changed: number },
): Promise<VexReport> {
  mkdirSync(folder, PRIVATE_FOLDER)
  const { about, weights, skipped } = await packagesOf(options, documents)
  const file = createFileDraft(folder, '.zip')
  try {
    const zip = createContentZip((chunk) => file.write(chunk))
    const updated = newestOf(documents) // not `changed`: equal documents give equal bytes
    const packages = [...about].map(([id, digests]) => ({ id, ...placeOf(id, digests), digests }))
    const index = packages.map(({ id, location }) => ({ id, location, format: 'openvex' }))
    zip.add('index.json', toJson({ updated_at: toIso(updated * 1000), packages: index }))
    const read = createDocuments(options.reads, documents)
    for (const batch of batchesOf(byLocation(packages), weights))
      for await (const [location, content] of contentsOf(batch, read, options.pause))
        zip.add(location, content)
    zip.finish()
    const counts = { documents: documents.length, packages: about.size }
    const made: VexInfo = { ...file.finish(), changed, ...counts }
    writeFileSync(join(folder, VEX_FILE), JSON.stringify(made), { mode: PRIVATE_FILE })
    const report = { documents: made.documents, packages: made.packages }
    return skipped.length === 0 ? report : { ...report, skipped }
  } finally {
    file.close()
  }
}

/**
 * Returns which documents have statements about each package, both in order, and about how many bytes of them. What is not
 * OpenVEX, or too long, is skipped.
 */
async function packagesOf({ reads, pause }: VexOptions, documents: readonly VexDocument[]) {
  const about = new Map<string, string[]>()
  const weights = new Map<string, number>()
  const skipped = new Set<string>()
  for (const document of documents) {
    const content = reads.readVexContent(document)
    const read = content === null ? null : readOpenVex(content)
    for (const id of read?.packages ?? []) {
      if (Buffer.byteLength(id) > MAX_ID_BYTES) {
        if (skipped.size < REPORTED.count) skipped.add(`${id.slice(0, REPORTED.length)}...`)
        continue
      }
      const digests = about.get(id) ?? []
      digests.push(document.digest)
      about.set(id, digests)
      const share = document.size / (read?.packages.size ?? 1)
      weights.set(id, (weights.get(id) ?? 0) + share)
    }
    await pause()
  }
  const sorted = [...about].sort(([one], [other]) => (one < other ? -1 : 1))
  return { about: new Map(sorted), weights, skipped: [...skipped] }
}

interface Place {
  readonly id: string
  readonly location: string
  readonly digests: readonly string[]
}

/** Returns the location: a document that is alone about its packages is stored once; several are merged per package. */
function placeOf(id: string, digests: readonly string[]): { location: string } {
  const [only = ''] = digests
  if (digests.length === 1) return { location: `documents/${only}.json` }
  const segments = id.slice('pkg:'.length).split('/')
  if (segments.some((one) => Buffer.byteLength(one) > MAX_NAME_BYTES))
    return { location: `pkg/${sha256Hex(id)}/vex.json` }
  // A name of dots only would leave its folder when the archive is unpacked.
  const safe = segments.map((one) => (/^\.+$/.test(one) ? one.replaceAll('.', '%2E') : one))
  return { location: `pkg/${safe.join('/')}/vex.json` }
}

function byLocation(packages: readonly Place[]): [string, Place][] {
  const places = new Map(packages.map((place) => [place.location, place]))
  return [...places].sort(([one], [other]) => (one < other ? -1 : 1))
}

interface StoredVex {
  readonly content: Buffer
  readonly read: OpenVex
}

/** Reads documents. */
function createDocuments(reads: VexReader, documents: readonly VexDocument[]) {
  const known = new Map(documents.map((document) => [document.digest, document]))
  return (digest: string): StoredVex => {
    const document = known.get(digest)
    const content = document === undefined ? null : reads.readVexContent(document)
    const read = content === null ? null : readOpenVex(content)
    if (content === null || read === null) throw new Error(`document ${digest} is lost`)
    return { content, read }
  }
}

/** Bytes of the statements that are merged at the same time. */
const BATCH_BYTES = 8 * 2 ** 20

/** Divides the places, in order, so that one reading of their documents serves many packages. */
function* batchesOf(
  places: readonly [string, Place][],
  weights: ReadonlyMap<string, number>,
): Generator<readonly [string, Place][]> {
  let batch: [string, Place][] = []
  let bytes = 0
  for (const [location, place] of places) {
    const own = place.digests.length === 1 ? 0 : (weights.get(place.id) ?? 0) // a single one is not kept
    if (bytes + own > BATCH_BYTES && batch.length > 0) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push([location, place])
    bytes += own
  }
  yield batch
}

/** Yields what is at each place of a batch, in order; each of its shared documents is read once. */
async function* contentsOf(
  batch: readonly [string, Place][],
  read: (digest: string) => StoredVex,
  pause: () => Promise<void>,
): AsyncGenerator<readonly [location: string, content: Buffer]> {
  const merges = new Map<string, VexMerge>()
  const shared = new Map<string, VexMerge[]>()
  for (const [location, { id, digests }] of batch) {
    if (digests.length === 1) continue
    const merge = createMerge(id)
    merges.set(location, merge)
    for (const digest of digests) {
      const others = shared.get(digest)
      if (others === undefined) shared.set(digest, [merge])
      else others.push(merge)
    }
  }
  for (const digest of [...shared.keys()].sort()) {
    const document = read(digest).read
    for (const merge of shared.get(digest) ?? []) merge.add(document)
    await pause()
  }
  for (const [location, { digests }] of batch) {
    yield [location, merges.get(location)?.end() ?? singleContent(read(digests[0] ?? ''))]
    merges.delete(location)
    await pause()
  }
}

/** A single document is upstream's own, byte for byte, unless it has the old form. */
function singleContent({ content, read }: StoredVex): Buffer {
  if (read.current) return content
  const merge = createMerge(null)
  merge.add(read)
  return merge.end()
}

function toJson(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 1)}\n`)
}
