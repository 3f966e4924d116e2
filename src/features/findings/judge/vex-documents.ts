import { sha256Of } from '../../../base/digest.ts'
import { statedId } from '../../../documents/vex/apply.ts'
import { ANY_PLACE, statedPlaces } from '../../../documents/vex/coverage.ts'
import { isVexDamaged, readVexStatements } from '../../../documents/vex/read.ts'
import type { Statement } from '../../../documents/vex/statement.ts'
import { UNREAD } from '../../../store/findings/reads.ts'
import { EVERY_PLACE, type StoredDocument, type VexAbout } from '../../../store/findings/vex.ts'
import type { FindingsStore } from '../../../store/findings/writes.ts'
import { type VexDocument, tagsBelieving } from '../../../store/catalog/vex.ts'
import { type DuringReads, catalogOf, expectCatalog } from './during.ts'

/**
 * What stands for all vulnerabilities of a statement that has so many more pairs of product and vulnerability than products and
 * vulnerabilities: what is stored of a document stays in proportion to its size.
 */
export const ANY_VULNERABILITY = 0
const MOST_PAIRS = 4

/** Texts whose numbers are kept. */
const KEPT_NUMBERS = 100_000

interface DocumentsInput {
  readonly store: FindingsStore
  readonly during: DuringReads
}

/**
 * Brings what is known of the VEX documents to those of the catalog, each in a transaction of its own, and marks the tags that
 * a changed one may be about. One that is damaged is tried again by the next judgement. Returns the catalog's snapshot; null
 * where there is none. Throws `locked` where it is replaced meanwhile.
 */
export async function followVex({ store, during }: DocumentsInput): Promise<string | null> {
  const catalog = during(catalogOf)
  if (catalog === null) return catalog
  const { signatures, listed } = during((reads, vex) => {
    expectCatalog(reads, catalog)
    const signatures = reads.catalog.readVexMark()
    const isKnown = catalog === store.readFollowed('vex') && signatures === store.readFollowed('signatures')
    return { signatures, listed: isKnown ? null : vex.listVexDocuments() }
  })
  if (listed === null) return catalog
  const wanted = new Map(listed.map((one) => [one.digest, storedOf(one)]))
  const stored = store.listVexDocuments()
  const known = new Set(stored.filter((one) => isSame(one, wanted.get(one.digest))))
  store.putFollowed('vex', '')
  const numberOf = createNumbers()
  for (const one of stored) if (!known.has(one)) await store.inOne(() => Promise.resolve(store.dropVexDocument(one.id)))
  const digests = new Set([...known].map(({ digest }) => digest))
  const unknown = new Set(during((_, vex) => vex.listTagsWithoutVex()))
  let isAnyUnread = false
  for (const document of listed) {
    if (digests.has(document.digest)) continue
    const statements = readDocument(during, document, catalog)
    isAnyUnread ||= statements === null
    if (statements === null) for (const tag of document.tags ?? []) unknown.add(tag)
    if (statements === null) continue
    const about = aboutOf(statements, numberOf)
    await store.inOne(() => Promise.resolve(store.addVexDocument(storedOf(document), about)))
  }
  await putUnknown(store, [...unknown].sort())
  store.putFollowed('signatures', signatures)
  store.putFollowed('vex', isAnyUnread ? unreadState(catalog) : catalog)
  return catalog
}

/** Stores the ids of the tags of whose own VEX some is not known, and marks the tags of which that is not as before. */
async function putUnknown(store: FindingsStore, tags: readonly string[]): Promise<void> {
  const before = store.listTagsWithoutVex()
  const differing = new Set([...before, ...tags].filter((one) => before.includes(one) !== tags.includes(one)))
  if (differing.size === 0) return
  await store.inOne(() => {
    for (const { id, owner } of store.listAskedTags()) if (differing.has(owner)) store.markTag(id)
    store.putFollowed('withoutVex', JSON.stringify(tags))
    return Promise.resolve()
  })
}

/** Returns a document as it is stored: another one when its signature comes to something else that counts. */
function storedOf(document: VexDocument): StoredDocument {
  const { digest, tags = [] } = document
  return { digest, tags: JSON.stringify(tags), believed: JSON.stringify(tagsBelieving(document)) }
}

function isSame(one: StoredDocument, other: StoredDocument | undefined): boolean {
  return one.tags === other?.tags && one.believed === other.believed
}

/** The state in which some documents of a catalog could not be read. */
export function unreadState(catalog: string): string {
  return catalog + UNREAD
}

/** Returns the statements of a VEX document, none for what is no VEX; null for one that is damaged. Throws `locked`. */
export function readDocument(during: DuringReads, document: VexDocument, catalog: string): readonly Statement[] | null {
  return during((reads, vex) => {
    const statements = readVexStatements(vex, document)
    if (statements !== null) return statements
    expectCatalog(reads, catalog)
    return isVexDamaged(vex, document) ? null : []
  })
}

function* aboutOf(
  statements: readonly Statement[],
  numberOf: (text: string) => number,
): Generator<VexAbout, void, undefined> {
  for (const statement of statements) {
    const ids = [...new Set(statement.vulnerabilities.map(statedId))]
    const places = statedPlaces(statement)
    const isLarge = ids.length * places.length > MOST_PAIRS * (ids.length + places.length)
    const vulnerabilities = isLarge ? [ANY_VULNERABILITY] : ids.map(numberOf)
    for (const place of places)
      for (const vulnerability of vulnerabilities)
        yield [place === ANY_PLACE ? EVERY_PLACE : numberOf(place), vulnerability]
  }
}

/** Creates the function that makes a number of 48 bits of a text. Equal numbers of other texts cost a look, and say nothing. */
export function createNumbers(): (text: string) => number {
  const known = new Map<string, number>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    if (known.size >= KEPT_NUMBERS) known.clear()
    const number = sha256Of(text).readUIntBE(0, 6)
    known.set(text, number)
    return number
  }
}
