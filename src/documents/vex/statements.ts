import type { Fields } from '../../base/json/objects.ts'
import { refuseManyValues } from '../../base/json/values.ts'
import { type Opening, documentsIn, envelopesOf, subjectDigests } from '../envelopes.ts'
import { isCsaf, isCycloneDx, isOpenVex, isStatement, membersIn } from '../formats.ts'
import { readCsaf } from './csaf.ts'
import { readAnalyses } from './cyclonedx.ts'
import { readOpenVex } from './openvex.ts'
import type { Statement, VexContent } from './statement.ts'

/** How VEX documents are opened. */
const VEX_OPENING: Opening = {
  what: 'the VEX document',
  formats: null,
  refuse: refuseManyValues,
}

/** A document that is in no further envelope, and what the attestations are about that it is in. */
export interface Attested {
  readonly document: Fields
  /** The digests that they are about, `sha256:…`. */
  readonly about: readonly string[]
  /** Whether it is in any attestation, also in one about no digest. */
  readonly isAttested: boolean
  /** Whether it is the whole file, and in no envelope, list or line. */
  readonly isWhole: boolean
}

/** Returns the documents of a file that `accepts`, also in envelopes, whose signatures are not checked. Throws `bad_request`. */
export function attestedIn(bytes: Buffer, accepts: (document: Fields) => boolean): Attested[] {
  const { documents, isOne } = documentsIn(bytes, VEX_OPENING)
  return documents.flatMap((outermost) => {
    const about = new Set<string>()
    let isAttested = false
    for (const document of envelopesOf(outermost, VEX_OPENING)) {
      isAttested ||= typeof document['_type'] === 'string'
      for (const digest of digestsAttested(document)) about.add(digest)
      const isWhole = isOne && document === outermost
      if (accepts(document)) return [{ document, about: [...about], isAttested, isWhole }]
    }
    return []
  })
}

/** Returns the digests that an in-toto statement is about; none of anything else. */
function digestsAttested(document: Fields): string[] {
  return isStatement(membersIn(document)) ? subjectDigests(document) : []
}

/** Reads the VEX documents of a file: OpenVEX, CycloneDX and CSAF; none of another format. Throws `bad_request`. */
export function readVexDocuments(bytes: Buffer): VexContent[] {
  return attestedIn(bytes, (document) => readerOf(document) !== null).flatMap(
    ({ document }) => readerOf(document)?.(document) ?? [],
  )
}

/**
 * Reads the statements of OpenVEX, CycloneDX and CSAF, also in an envelope, whose signature is not checked; null for anything
 * else.
 */
export function readStatements(bytes: Buffer): Statement[] | null {
  try {
    const documents = attestedIn(bytes, (document) => readerOf(document) !== null)
    return documents.length === 0 ? null : statementsOf(documents)
  } catch {
    return null // no JSON, too many values, or an envelope around either
  }
}

/** The statements of several documents of one file have their places one after the other. */
function statementsOf(documents: readonly Attested[]): Statement[] {
  const all: Statement[] = []
  for (const { document, about } of documents) {
    const first = (all.at(-1)?.place ?? -1) + 1
    for (const statement of readerOf(document)?.(document).statements ?? []) {
      if (statement === null) continue
      const placed = first === 0 ? statement : { ...statement, place: statement.place + first }
      all.push(about.length === 0 ? placed : { ...placed, about })
    }
  }
  return all
}

/** Returns what reads a document without an envelope; null for another format. */
function readerOf(document: Fields): ((document: Fields) => VexContent) | null {
  const members = membersIn(document)
  if (isOpenVex(members)) return Array.isArray(document['statements']) ? readOpenVex : null
  if (isCycloneDx(members)) return readAnalyses
  return isCsaf(document) ? readCsaf : null
}
