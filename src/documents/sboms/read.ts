import { type Fields, isObject, jsonTextOf } from '../../base/json/objects.ts'
import { readCycloneDx } from './cyclonedx.ts'
import { envelopesOf, parse, refuseCostlySbom } from './envelopes.ts'
import { SBOM_BOUNDS, SBOM_FORMATS, type InputSbom, textOr, unreadable } from './sbom.ts'
import { isSpdx3, readSpdx2, readSpdx3 } from './spdx.ts'

/**
 * Reads an SBOM in CycloneDX, SPDX 2 or SPDX 3, also as the predicate of an in-toto statement in a DSSE envelope; signatures
 * are not checked. Throws `bad_request` for anything else.
 */
export function readInputSbom(bytes: Buffer): InputSbom {
  if (bytes.length > SBOM_BOUNDS.bytes) throw unreadable(sbomTooLarge())
  const documents = parseAll(bytes)
  const [first = {}] = documents
  if (documents.length === 1) return open(first) ?? refuse(first)
  const sboms = documents.flatMap((document) => open(document) ?? [])
  if (sboms.length > 1) throw unreadable(`it has ${sboms.length} SBOMs, one in each line: give them one at a time`)
  return sboms[0] ?? refuse(first)
}

/** Returns the SBOM that is a document, in its envelopes, or the one member that some tools wrap it in; null for none. */
function open(given: Fields): InputSbom | null {
  const outermost = memberOf(given)
  for (const document of envelopesOf(outermost)) {
    const enveloped = document !== outermost
    if (document['bomFormat'] === 'CycloneDX') return { ...readCycloneDx(document), enveloped }
    if (typeof document['spdxVersion'] === 'string') return { ...readSpdx2(document), enveloped }
    if (isSpdx3(document)) return { ...readSpdx3(document), enveloped }
  }
  return null
}

/** Names of the member in which GitHub's dependency graph and Docker's buildx give an SBOM. */
const MEMBERS = ['sbom', 'SPDX']

function memberOf(given: Fields): Fields {
  const members = MEMBERS.map((name) => given[name]).filter(isObject)
  return members.find(({ spdxVersion }) => typeof spdxVersion === 'string') ?? given
}

/** Returns why an SBOM is too large, and what to do. */
export function sbomTooLarge(bytes: number = SBOM_BOUNDS.bytes): string {
  return `it is larger than ${bytes / 2 ** 20} MiB: leave the files out of it, or split it`
}

/** Lines of a file in JSON Lines: attestations of one image are a few. */
const MAX_LINES = 1_000

/** Parses one document in JSON, or several in JSON Lines, as attestations are written. */
function parseAll(bytes: Buffer): Fields[] {
  refuseCostlySbom(bytes)
  const text = jsonTextOf(bytes)
  try {
    return [parse(text)]
  } catch (cause) {
    const lines = text.trimEnd().split('\n', MAX_LINES + 1)
    const written = lines.filter((line) => line.trim() !== '')
    if (written.length < 2 || !isJson(written[0] ?? '')) throw cause
    if (lines.length > MAX_LINES) throw unreadable(`it has more than ${MAX_LINES} lines of JSON`)
    return written.map(parse)
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function refuse(document: Fields): never {
  throw unreadable(whyNot(document))
}

function whyNot({ artifacts, predicateType }: Fields): string {
  if (Array.isArray(artifacts)) return `it is in syft's own format: write it as ${SBOM_FORMATS}`
  const type = textOr(predicateType)
  const found = type === '' ? '' : `, but a statement of type ${type.slice(0, 100)}`
  return `it is none${found}: accepted are ${SBOM_FORMATS}`
}
