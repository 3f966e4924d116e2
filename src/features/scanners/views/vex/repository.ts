import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../../../../base/files.ts'
import { toIso } from '../../../../base/time.ts'
import { type VexDocument, tagsBelieving } from '../../../../store/catalog/vex.ts'
import { type VexReads, isVexDamaged } from '../../../../documents/vex/read.ts'
import { VEX_FILE, type VexGeneration, type VexInfo, readVexInfo, unreadVexIn } from '../../store/generations.ts'
import { createContentZip } from '../../small-archive.ts'
import type { ZipMember } from '../../../../archive/zip/writer.ts'
import { createFileDraft } from '../files.ts'
import { changedAfter, generationName, makeGeneration } from '../generation.ts'
import { type Claim, claimsOf } from './claims.ts'
import { type MadeDocument, type MadeRepository, type Sources, createSources, openMade } from './made.ts'
import { type Plan, type PlannedPackage, planRepository, skippedIn, sourceOf } from './plan.ts'
import { showingsOf, shownReads } from './shown.ts'
import { VEX_RULES } from './basis.ts'
import { type VexOrder, type VexSource, createMerge } from './merge.ts'
import { type OpenVex, readOpenVex } from './openvex.ts'

/** What a VEX repository is made from. */
interface VexOptions {
  readonly dataDir: string
  readonly reads: VexReads
  /** Returns the package URLs of the image of a tag; absent: they are not known. */
  readonly imagesOf?: (tag: string) => readonly string[]
  /** The catalog's snapshot in `reads`; `asOf`: of the VEX in it, unix milliseconds; `floor`: as of `readDateFloor`. */
  readonly snapshot: { readonly id: string; readonly asOf: number; readonly floor?: number | null }
  /** What decides beside the snapshot which documents are believed (`vexBasis`). */
  readonly basis?: string
  readonly rebuild?: boolean
  readonly pause: () => Promise<void>
}

/** What was made. */
export type VexReport = Pick<VexGeneration, 'documents' | 'packages'> & {
  /** Documents that were read, because the generation before was not made of them. */
  readonly read: number
  /** Members of the archive that were made, and those that were copied from the generation before. */
  readonly made: number
  readonly copied: number
  /** Documents that are damaged, and missing in it. */
  readonly unread?: number
  /** Beginnings of package URLs that are too long for a repository. */
  readonly skipped?: readonly string[]
}

/** Largest document that is read, bytes: far above any real VEX document. */
const MAX_BYTES = 64 * 2 ** 20
/** What a generation is made by: another one is not made of it. Another zlib may compress otherwise. */
const FORM = `1 ${VEX_RULES} ${process.versions.zlib}`

/** The name of the generation that shows these documents. */
function vexName(
  documents: readonly VexDocument[],
  imagesOf: (tag: string) => readonly string[],
  withoutVex: readonly string[] = [],
): string {
  const tags = [...new Set(documents.flatMap((one) => one.tags ?? []))].sort()
  return generationName('vex', [
    VEX_RULES,
    ...documents.map((one) => [one.digest, one.changed, ...tagsIn(one)].join(' ')),
    ...tags.map((tag) => JSON.stringify([tag, ...imagesOf(tag)])),
    ...withoutVex.map((tag) => JSON.stringify(['without VEX', tag])),
  ])
}

/** The tags of a document, and where they are fewer those for which it may rule anything out. */
function tagsIn(document: VexDocument): readonly string[] {
  const { tags = [] } = document
  const believing = tagsBelieving(document)
  if (believing === null) return [...tags, 'for none']
  return believing.length === tags.length ? tags : [...tags, 'for', ...believing]
}

const NO_IMAGES = (): readonly string[] => []

/**
 * Makes the VEX repository (VEX Repository Specification 0.1) of all mirrored OpenVEX documents, but those whose signature is
 * enforced and not verified: of these counts what they leave open. Null when that is served already. Throws as `makeGeneration`.
 */
export function makeVexRepository(options: VexOptions): Promise<VexReport | null> {
  const { dataDir, reads, snapshot, basis = '', rebuild = false, imagesOf = NO_IMAGES } = options
  const documents = reads.listVexDocuments().filter(({ size }) => size <= MAX_BYTES)
  const name = vexName(documents, imagesOf, reads.listTagsWithoutVex?.())
  const isRepaired = hasRepaired(options, documents)
  const dating = { newest: newestOf(documents), floor: snapshot.floor ?? null, readChanged: changedIn }
  const make = (folder: string, before: string | null) =>
    writeRepository(options, documents, {
      folder,
      before: rebuild ? null : before,
      // A document that goes takes its date along.
      changed: changedAfter(before, isRepaired ? '' : name, dating),
    })
  const { id, asOf } = snapshot
  const again = rebuild || isRepaired
  return makeGeneration({ dataDir, kind: 'vex', name, snapshot: id, basis, asOf, rebuild: again, make })
}

/** Whether a document can be read now that the repository in use lacks: its name is that of all listed documents. */
function hasRepaired({ dataDir, reads }: VexOptions, documents: readonly VexDocument[]): boolean {
  const unread = new Set(unreadVexIn(dataDir))
  if (unread.size === 0) return false
  return documents.some((one) => unread.has(one.digest) && reads.readVexContent(one) !== null)
}

const changedIn = (folder: string): number | null => readVexInfo(folder)?.changed ?? null

function newestOf(documents: readonly VexDocument[]): number {
  return documents.reduce((latest, one) => Math.max(latest, one.changed), 0)
}

/** Where a repository is made, and what from. */
interface Place {
  readonly folder: string
  /** Folder of the generation before. */
  readonly before: string | null
  readonly changed: number
}

/**
 * Writes what differs from the generation before and copies the rest; everything, where that cannot be used or something of it is
 * lost. Equal documents give equal bytes either way.
 */
async function writeRepository(
  options: VexOptions,
  documents: readonly VexDocument[],
  place: Place,
): Promise<VexReport> {
  const old = place.before === null ? null : openOrNull(place.before)
  try {
    if (old !== null) return await writeFiles(options, documents, place, old)
  } catch {
    // A build from the beginning says what is wrong, if it is anything else than the generation before.
  } finally {
    old?.close()
  }
  return writeFiles(options, documents, place, null)
}

function openOrNull(folder: string): MadeRepository | null {
  try {
    return openMade(folder, FORM)
  } catch {
    return null
  }
}

async function writeFiles(
  { reads: stored, imagesOf = NO_IMAGES, pause }: VexOptions,
  listed: readonly VexDocument[],
  { folder, changed }: Place,
  old: MadeRepository | null,
): Promise<VexReport> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, PRIVATE_FOLDER)
  const claims = await claimsOf(stored, listed, old?.claims ?? new Map(), pause)
  const documents = listed.filter((one) => tagsBelieving(one) !== null)
  const damaged = unknownOf(stored, listed, claims)
  const unknown = [...(stored.listTagsWithoutVex?.() ?? []), ...damaged.flatMap(({ tags = [] }) => tags)]
  const { reads, originalOf } = shownReads(stored, documents, showingsOf(listed, claims, { imagesOf, unknown }))
  const plan = await planRepository({ reads, documents: reads.listVexDocuments(), old, pause })
  const drafts = { archive: createFileDraft(folder, '.zip'), list: createFileDraft(folder, '.jsonl') }
  try {
    const zip = createContentZip((chunk) => drafts.archive.write(chunk))
    const sources = createSources(drafts.list)
    zip.add('index.json', indexOf(plan, newestOf(documents))) // not `changed`: equal documents give equal bytes
    let copied = 0
    let made = 0
    for await (const member of repositoryMembers({ reads, plan, old, pause })) {
      if ('copied' in member) zip.adopt(member.copied)
      else zip.add(member.location, member.content)
      if ('copied' in member) copied++
      else made++
      if (member.merged !== null) sources.add(member.merged.id, member.merged.order)
    }
    zip.finish()
    const archive = drafts.archive.finish()
    const { file, size, last } = sources.finish(sourcesOf(plan, archive.file, claims))
    const counts = { documents: plan.documents.size, packages: plan.packages.length }
    const unread = [
      ...plan.unread.map(originalOf),
      ...damaged.filter((one) => tagsBelieving(one) === null).map(({ digest }) => digest),
    ]
    const info: VexInfo = {
      ...archive,
      changed,
      ...counts,
      sources: { file, size, last },
      ...(unread.length > 0 && { unread }),
    }
    writeFileSync(join(folder, VEX_FILE), JSON.stringify(info), { mode: PRIVATE_FILE })
    const skipped = skippedIn(plan)
    return {
      ...counts,
      read: plan.read,
      made,
      copied,
      ...(unread.length > 0 && { unread: unread.length }),
      ...(skipped.length > 0 && { skipped }),
    }
  } finally {
    drafts.archive.close()
    drafts.list.close()
  }
}

/** Returns the documents of tags of which it is not known what they say: they are damaged. */
function unknownOf(
  reads: VexReads,
  listed: readonly VexDocument[],
  claims: ReadonlyMap<string, unknown>,
): readonly VexDocument[] {
  const unread = listed.filter(({ digest, tags = [] }) => tags.length > 0 && !claims.has(digest))
  return unread.filter((one) => isVexDamaged(reads, one))
}

function indexOf({ packages }: Plan, updated: number): Buffer {
  const listed = packages.map(({ id, location }) => ({ id, location, format: 'openvex' }))
  return toJson({ updated_at: toIso(updated * 1000), packages: listed })
}

function sourcesOf(
  { documents, packages }: Plan,
  archive: string,
  claims: ReadonlyMap<string, readonly Claim[]>,
): Sources {
  const listed = [...documents.values()].map(({ number, digest, author, timestamp, skipped }): MadeDocument => ({
    number,
    digest,
    author,
    timestamp,
    skipped,
  }))
  return {
    form: FORM,
    archive,
    documents: listed,
    packages: packages.map(({ id, numbers }) => [id, numbers]),
    claims: Object.fromEntries(claims),
  }
}

function toJson(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 1)}\n`)
}

/** What contents are made from. */
interface ContentsOptions {
  readonly reads: VexReads
  readonly plan: Plan
  /** The generation before, where it can be used. */
  readonly old: MadeRepository | null
  readonly pause: () => Promise<void>
}

/** A member of the repository: copied, valid until the next is asked for, or its content. */
type VexMember = ({ readonly copied: ZipMember } | { readonly location: string; readonly content: Buffer }) & {
  /** The package that documents are merged about, and the order of their statements. */
  readonly merged: { readonly id: string; readonly order: VexOrder | Buffer } | null
}

/** Bytes of the statements that are merged at the same time. */
const BATCH_BYTES = 8 * 2 ** 20

/**
 * Yields all members of the repository, in order. Those whose documents are the same are copied from the generation before;
 * the others are made in batches, so that one reading of a document serves many packages. Throws for a document that cannot be
 * read any more.
 */
async function* repositoryMembers(options: ContentsOptions): AsyncGenerator<VexMember> {
  const works = worksOf(options)
  for (let from = 0; from < works.length;) {
    let to = from
    for (let bytes = 0; to < works.length; to++) {
      bytes += works[to]?.weight ?? 0
      if (bytes > BATCH_BYTES && to > from) break
    }
    yield* batchOf(works.slice(from, to), options)
    from = to
  }
}

/** What is to be done for a member. */
interface Work extends PlannedPackage {
  readonly isCopied: boolean
  /** Begins with the member of the generation before. */
  readonly isUpdated: boolean
  /** Documents to read, by their numbers. */
  readonly toRead: readonly number[]
  /** Bytes of its statements, about; those of a single document are not kept. */
  readonly weight: number
}

function worksOf({ plan: { documents, packages }, old }: ContentsOptions): Work[] {
  const shares = new Map<number, number>()
  for (const { numbers } of packages) for (const number of numbers) shares.set(number, (shares.get(number) ?? 0) + 1)
  const places = new Map(packages.map((one) => [one.location, one]))
  const sorted = [...places.values()].sort((a, b) => (a.location < b.location ? -1 : 1))
  return sorted.map((one): Work => {
    const isMerged = one.numbers.length > 1
    const isThere = old?.has(one.location) ?? false
    const isCopied = isThere && (one.isSame || !isMerged)
    if (isCopied) return { ...one, isCopied, isUpdated: false, toRead: [], weight: 0 }
    const isUpdated = isMerged && isThere
    const before = new Set(isUpdated ? old?.packages.get(one.id)?.[1] : [])
    const toRead = one.numbers.filter((number) => !before.has(number))
    const shareOf = (number: number): number => (documents.get(number)?.size ?? 0) / (shares.get(number) ?? 1)
    const read = toRead.reduce((sum, number) => sum + shareOf(number), 0)
    const own = isUpdated ? (old?.sizeOf(one.location) ?? 0) : 0
    return { ...one, isCopied, isUpdated, toRead, weight: isMerged ? own + read : 0 }
  })
}

async function* batchOf(
  works: readonly Work[],
  { reads, plan, old, pause }: ContentsOptions,
): AsyncGenerator<VexMember> {
  const read = createDocuments(reads, plan)
  const merges = await mergeAll(works, old, plan, read, pause)
  for (const work of works) {
    const { id, location, numbers } = work
    const merge = merges.get(location)
    merges.delete(location)
    if (old !== null && work.isCopied) {
      const made = numbers.length > 1 ? old.packages.get(id) : undefined
      const merged = made === undefined ? null : { id, order: old.readOrder(made) }
      yield { copied: old.readMember(location), merged }
    } else if (merge === undefined) {
      yield { location, content: singleContent(read(numbers[0] ?? 0)), merged: null }
    } else {
      const sources = new Map<number, VexSource>()
      for (const number of numbers) {
        const source = plan.documents.get(number)
        if (source !== undefined) sources.set(number, source)
      }
      const { content, order } = merge.end(sources)
      yield { location, content, merged: { id, order } }
    }
    await pause()
  }
}

/** Returns the merges of a batch by their locations; each of its documents is read once. */
async function mergeAll(
  works: readonly Work[],
  old: MadeRepository | null,
  { documents }: Plan,
  read: (number: number) => StoredVex,
  pause: () => Promise<void>,
) {
  const merges = new Map<string, ReturnType<typeof createMerge>>()
  const wanted = new Map<number, ReturnType<typeof createMerge>[]>()
  for (const { id, location, numbers, isCopied, isUpdated, toRead } of works) {
    if (isCopied || numbers.length === 1) continue
    const merge = createMerge(id)
    merges.set(location, merge)
    const made = isUpdated ? old?.packages.get(id) : undefined
    if (old !== null && made !== undefined) {
      const order = JSON.parse(old.readOrder(made).toString()) as VexOrder
      merge.restore({ content: old.readContent(location), order }, (one) => documents.has(one))
    }
    for (const number of toRead) {
      const others = wanted.get(number)
      if (others === undefined) wanted.set(number, [merge])
      else others.push(merge)
    }
  }
  for (const [number, into] of wanted) {
    const document = read(number).read
    for (const merge of into) merge.add(number, document)
    await pause()
  }
  return merges
}

interface StoredVex {
  readonly content: Buffer
  readonly read: OpenVex
}

/** Creates the function that reads a document by its number. */
function createDocuments(reads: VexReads, { documents }: Plan): (number: number) => StoredVex {
  return (number) => {
    const document = documents.get(number)
    const content = document === undefined ? null : reads.readVexContent(document)
    const read = content === null ? null : readOpenVex(content)
    if (content === null || read === null) throw new Error(`document ${document?.digest ?? number} is lost`)
    return { content, read }
  }
}

/** A single document is upstream's own, byte for byte, unless it has the old form. */
function singleContent({ content, read }: StoredVex): Buffer {
  if (read.current) return content
  const merge = createMerge(null)
  merge.add(0, read)
  return merge.end(new Map([[0, sourceOf(read)]])).content
}
