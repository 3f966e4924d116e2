import type { VexReads } from '../../../../documents/vex/read.ts'
import type { ZipMember } from '../../../../archive/zip/writer.ts'
import type { MadeRepository } from './made.ts'
import { type VexOrder, type VexSource, createMerge } from './merge.ts'
import { type OpenVex, readOpenVex } from './openvex.ts'
import { type Plan, type PlannedPackage, sourceOf } from './plan.ts'

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
export async function* repositoryMembers(options: ContentsOptions): AsyncGenerator<VexMember> {
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
