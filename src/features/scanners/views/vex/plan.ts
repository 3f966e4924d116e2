import { sha256Hex } from '../../../../base/digest.ts'
import { instantOf } from '../../../../base/time.ts'
import type { VexDocument } from '../../../../store/catalog/vex.ts'
import type { VexReads } from '../../../../documents/vex/read.ts'
import type { MadeDocument, MadeRepository } from './made.ts'
import { type OpenVex, readOpenVex } from './openvex.ts'

/** What a repository is planned from. */
interface PlanOptions {
  readonly reads: VexReads
  readonly documents: readonly VexDocument[]
  /** The generation before, where it can be used. */
  readonly old: MadeRepository | null
  readonly pause: () => Promise<void>
}

/** A document that is read, or was when a generation before was made. */
type PlannedDocument = MadeDocument & VexDocument

/** A package with its documents in the order of their digests, by their numbers. */
export interface PlannedPackage {
  readonly id: string
  readonly location: string
  readonly numbers: readonly number[]
  /** The documents are those that the generation before had of it. */
  readonly isSame: boolean
}

/** What a repository is to have. */
export interface Plan {
  /** By their numbers, in the order of their digests. Those that cannot be read are omitted. */
  readonly documents: ReadonlyMap<number, PlannedDocument>
  /** In order. */
  readonly packages: readonly PlannedPackage[]
  /** Documents that were read. */
  readonly read: number
  /** Digests of those that are damaged. */
  readonly unread: readonly string[]
}

/** Longest package URL of the repository, bytes: far above any real one, far below what a name in a zip archive may have. */
const MAX_ID_BYTES = 4096
/** Longest name of a folder or file in the repository, bytes: what file systems take when a client unpacks it. */
const MAX_NAME_BYTES = 255
/** Skipped package URLs that are reported, and the characters of each. */
const REPORTED = { count: 5, length: 200 }

/**
 * Returns which documents have statements about each package. Only those are read that the generation before does not know: what
 * a document says follows from its digest. What is not OpenVEX has no package; a package URL that is too long is skipped.
 */
export async function planRepository(options: PlanOptions): Promise<Plan> {
  const { documents, packages, read, unread } = await readNew(options)
  const planned: PlannedPackage[] = []
  const ranks = new Map([...documents.keys()].map((number, rank) => [number, rank]))
  const rankOf = (number: number): number => ranks.get(number) ?? 0
  for (const id of new Set([...(options.old?.packages.keys() ?? []), ...packages.keys()])) {
    const known = options.old?.packages.get(id)?.[1] ?? []
    const kept = known.filter((number) => documents.has(number))
    const added = packages.get(id) ?? []
    const numbers = [...kept, ...added].sort((one, other) => rankOf(one) - rankOf(other))
    const [first] = numbers
    if (first === undefined) continue
    const isSame = added.length === 0 && kept.length === known.length
    const only = numbers.length > 1 ? null : (documents.get(first)?.digest ?? '')
    planned.push({ id, location: locationOf(id, only), numbers, isSame })
  }
  planned.sort(({ id: one }, { id: other }) => (one < other ? -1 : 1))
  return { documents, packages: planned, read, unread }
}

/** Reads the documents that are new, and gives them numbers; which of these are about each package. */
async function readNew({ reads, documents, old, pause }: PlanOptions) {
  const all = new Map<number, PlannedDocument>()
  const packages = new Map<string, number[]>()
  const unread: string[] = []
  let read = 0
  let next = 1 + [...(old?.documents.values() ?? [])].reduce((most, one) => Math.max(most, one.number), 0)
  for (const document of documents) {
    const { digest } = document
    const known = old?.documents.get(digest)
    if (known !== undefined) {
      all.set(known.number, { ...known, ...document })
      continue
    }
    const content = reads.readVexContent(document)
    read++
    if (content === null) {
      unread.push(digest)
      continue
    }
    const number = next++
    const openVex = readOpenVex(content)
    all.set(number, { ...document, number, ...sourceOf(openVex), skipped: skippedOf(openVex) })
    for (const id of openVex?.packages.keys() ?? []) {
      if (isTooLong(id)) continue
      const others = packages.get(id)
      if (others === undefined) packages.set(id, [number])
      else others.push(number)
    }
    await pause()
  }
  return { documents: all, packages, read, unread }
}

/** What the head of a document merged of it says. */
export function sourceOf(document: OpenVex | null): Pick<MadeDocument, 'author' | 'timestamp'> {
  const { author = '', timestamp } = document ?? {}
  const isDated = typeof timestamp === 'string' && instantOf(timestamp) !== ''
  return { author, timestamp: isDated ? timestamp : null }
}

function isTooLong(id: string): boolean {
  return Buffer.byteLength(id) > MAX_ID_BYTES
}

function skippedOf(document: OpenVex | null): string[] {
  const long = [...(document?.packages.keys() ?? [])].filter(isTooLong)
  return firstOf(long.map((id) => `${id.slice(0, REPORTED.length)}...`))
}

/** The first of the package URLs that were skipped, by their beginnings. */
export function skippedIn({ documents }: Plan): string[] {
  return firstOf([...documents.values()].flatMap(({ skipped }) => skipped))
}

function firstOf(texts: readonly string[]): string[] {
  return [...new Set(texts)].slice(0, REPORTED.count)
}

/** A document that is alone about its packages is stored once; several are merged per package. */
function locationOf(id: string, only: string | null): string {
  if (only !== null) return `documents/${only}.json`
  const segments = id.slice('pkg:'.length).split('/')
  if (segments.some((one) => Buffer.byteLength(one) > MAX_NAME_BYTES)) return `pkg/${sha256Hex(id)}/vex.json`
  // A name of dots only would leave its folder when the archive is unpacked.
  const safe = segments.map((one) => (/^\.+$/.test(one) ? one.replaceAll('.', '%2E') : one))
  return `pkg/${safe.join('/')}/vex.json`
}
