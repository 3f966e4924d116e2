import { type Fields, isObject } from '../../base/json/objects.ts'
import { documentsIn, envelopesOf } from '../envelopes.ts'
import { isCycloneDx, isSpdx2, membersIn } from '../formats.ts'
import { readCycloneDx } from './cyclonedx.ts'
import { SBOM_BOUNDS, SBOM_FORMATS, SBOM_OPENING, type InputSbom, textOr, unreadable } from './sbom.ts'
import { isInSpdx3, readSpdx2, readSpdx3 } from './spdx.ts'

/**
 * Reads an SBOM in CycloneDX, SPDX 2 or SPDX 3, also as the predicate of an in-toto statement in a DSSE envelope; signatures
 * are not checked. Throws `bad_request` for anything else, and for several SBOMs.
 */
export function readInputSbom(bytes: Buffer): InputSbom {
  const sboms = readSboms(bytes)
  const [first, ...more] = sboms
  if (more.length > 0) throw unreadable(`it has ${sboms.length} SBOMs: give them one at a time`)
  return first
}

/** Reads the SBOMs of a file, of which there is at least one. Throws `bad_request`. */
export function readSboms(bytes: Buffer): readonly [InputSbom, ...InputSbom[]] {
  if (bytes.length > SBOM_BOUNDS.bytes) throw unreadable(sbomTooLarge())
  const { documents } = documentsIn(bytes, SBOM_OPENING)
  const [first, ...more] = documents.flatMap((document) => open(document) ?? [])
  if (first !== undefined) return [first, ...more]
  throw unreadable(whyNot(documents[0] ?? {}))
}

/** Returns the SBOM that is a document, in its envelopes, or the one member that some tools wrap it in; null for none. */
function open(given: Fields): InputSbom | null {
  const outermost = memberOf(given)
  for (const document of envelopesOf(outermost, SBOM_OPENING)) {
    const enveloped = document !== outermost
    if (isCycloneDx(membersIn(document))) return { ...readCycloneDx(document), enveloped }
    if (isSpdx2(membersIn(document))) return { ...readSpdx2(document), enveloped }
    if (isInSpdx3(document)) return { ...readSpdx3(document), enveloped }
  }
  return null
}

/** Names of the member in which GitHub's dependency graph and Docker's buildx give an SBOM. */
const MEMBERS = ['sbom', 'SPDX']

function memberOf(given: Fields): Fields {
  const members = MEMBERS.map((name) => given[name]).filter(isObject)
  return members.find((member) => isSpdx2(membersIn(member))) ?? given
}

/** Returns why an SBOM is too large, and what to do. */
export function sbomTooLarge(bytes: number = SBOM_BOUNDS.bytes): string {
  return `it is larger than ${bytes / 2 ** 20} MiB: leave the files out of it, or split it`
}

function whyNot({ artifacts, predicateType }: Fields): string {
  if (Array.isArray(artifacts)) return `it is in syft's own format: write it as ${SBOM_FORMATS}`
  const type = textOr(predicateType)
  const found = type === '' ? '' : `, but a statement of type ${type.slice(0, 100)}`
  return `it is none${found}: accepted are ${SBOM_FORMATS}`
}
