import { sha256Of } from '../../core/digest.ts'
import { isVexDamaged, readVexStatements, statedId } from '../../judging/vex/apply.ts'
import { isDisbelieved } from '../../domain/artifacts/signature.ts'
import { statedPlaces } from '../../judging/vex/coverage.ts'
import type { Statement } from '../../judging/vex/statements.ts'
import { UNREAD } from '../../store/findings/reads.ts'
import type { VexAbout } from '../../store/findings/vex.ts'
import type { FindingsStore } from '../../store/findings/writes.ts'
import type { VexDocument } from '../../store/views/vex.ts'
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
  const listed = during((reads, vex) => {
    expectCatalog(reads, catalog)
    return vex.listVexDocuments()
  })
  const known = new Map(store.listVexDocuments().map(({ digest, id }) => [digest, id]))
  const digests = new Set(listed.map(nameOf))
  const isSame = listed.every((one) => known.has(nameOf(one))) && known.size === digests.size
  if (isSame && catalog === store.readFollowed('vex')) return catalog
  store.putFollowed('vex', '')
  const numberOf = createNumbers()
  for (const [digest, id] of known)
    if (!digests.has(digest)) await store.inOne(() => Promise.resolve(store.dropVexDocument(id)))
  let isAnyUnread = false
  for (const document of listed) {
    const name = nameOf(document)
    if (known.has(name)) continue
    const statements = readDocument(during, document, catalog)
    isAnyUnread ||= statements === null
    if (statements === null) continue
    const about = aboutOf(statements, numberOf)
    await store.inOne(() => Promise.resolve(store.addVexDocument(name, about)))
  }
  store.putFollowed('vex', isAnyUnread ? unreadState(catalog) : catalog)
  return catalog
}

/** What follows the digest of a document that must not rule anything out. */
const DISBELIEVED = ' disbelieved'

/** Returns the name under which a document is known: another one when its signature comes to something else that counts. */
function nameOf({ digest, signature }: VexDocument): string {
  return isDisbelieved(signature) ? digest + DISBELIEVED : digest
}

/** Returns the digest of a document that is known under a name, and whether it may rule anything out. */
export function namedDocument(name: string): { digest: string; isBelieved: boolean } {
  const isBelieved = !name.endsWith(DISBELIEVED)
  return { digest: isBelieved ? name : name.slice(0, -DISBELIEVED.length), isBelieved }
}

/** The state in which some documents of a catalog could not be read. */
export function unreadState(catalog: string): string {
  return catalog + UNREAD
}

/** Returns the statements of a VEX document, none for CSAF and for what is no VEX; null for one that is damaged. Throws `locked`. */
export function readDocument(
  during: DuringReads,
  document: VexDocument,
  catalog: string,
): readonly Statement[] | null {
  return during((reads, vex) => {
    const statements = readVexStatements(vex, document)
    if (statements !== null) return statements === 'csaf' ? [] : statements
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
      for (const vulnerability of vulnerabilities) yield [numberOf(place), vulnerability]
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
