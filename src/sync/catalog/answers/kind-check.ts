import { isHtmlPage } from '../../../base/text.ts'
import type { DocumentKind } from '../../../base/domain/resources.ts'
import { type Fields, isObject } from '../../../base/json/objects.ts'
import { type Outline, createOutline } from '../../../base/json/outline.ts'
import {
  type Members,
  hasCsafHeader,
  isBundle,
  isCsafItem,
  isCycloneDx,
  isEnvelope,
  isOpenVex,
  isSpdx2,
  isSpdx3,
  isStatement,
} from '../../../documents/formats.ts'
import type { DocumentContent, DocumentFormat, DocumentForm } from './document-type.ts'

const HEAD_BYTES = 1024
/** Bytes at the end of a document in which its end tag is looked for. */
const TAIL_BYTES = 1024
const STYLE_SHEET = '<?xml-stylesheet'

/** Names what a document of each kind is, in messages. */
export const KIND_NAMES: Readonly<Record<DocumentKind, string>> = {
  sbom: 'a CycloneDX or SPDX document',
  vex: 'an OpenVEX, CycloneDX or CSAF document',
  provenance: 'an in-toto statement, a DSSE envelope or a Sigstore bundle',
  text: 'a text',
}

/** Creates a check that a document is of the expected kind (CycloneDX/SPDX, VEX, in-toto), in constant memory. */
export function createKindCheck(kind: DocumentKind) {
  const outline = createOutline()
  const head: Buffer[] = []
  const style = createSearch(STYLE_SHEET)
  let tail = Buffer.alloc(0)
  let size = 0
  let mayBeXml = true
  return {
    write(bytes: Buffer): void {
      if (size < HEAD_BYTES) head.push(Buffer.from(bytes.subarray(0, HEAD_BYTES)))
      if (size === 0) mayBeXml = !isJsonStart(bytes)
      size += bytes.length
      outline.write(bytes)
      if (!mayBeXml) return
      style.write(bytes)
      tail = Buffer.concat([tail, bytes.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
    },
    /** Returns the detected content, or the reason why the document is not of the expected kind. */
    end(): DocumentContent | { refused: string } {
      if (size === 0) return { refused: 'the document is empty' }
      const first = Buffer.concat(head)
      const start = first
        .toString('utf8')
        .replace(/^\ufeff/, '')
        .trimStart()
      if (isHtmlPage(start)) {
        return {
          refused: `it is an HTML page, not ${KIND_NAMES[kind]} (a sign-in page or a proxy?)`,
        }
      }
      const summary = outline.end()
      const type = detectType(kind, start, summary)
      if (type === null) return { refused: `it is not ${KIND_NAMES[kind]}` }
      if (isCycloneDxXml(start) && !hasEndTag(tail)) return { refused: 'it is cut off: it ends without its end tag' }
      const form = formOf(start, summary, first.includes(0))
      return { type, form, format: formatOf(start, summary), styled: style.found() }
    },
  }
}

/** Whether a text begins as a JSON object or list does: it is never served as XML then. */
function isJsonStart(bytes: Buffer): boolean {
  return bytes[0] === 0x7b || bytes[0] === 0x5b
}

/** Searches for a text in a stream of chunks, also across chunk boundaries. */
function createSearch(text: string): { write(bytes: Buffer): void; found(): boolean } {
  let last: Buffer | null = null
  let found = false
  return {
    write(bytes) {
      const end = Buffer.from(bytes.subarray(1 - text.length)) // a copy: the bytes are freed once they are stored
      if (last === null) {
        found = bytes.includes(text)
        last = end
        return
      }
      found ||= bytes.includes(text) || Buffer.concat([last, bytes.subarray(0, text.length)]).includes(text)
      last = Buffer.concat([last, end]).subarray(1 - text.length)
    },
    found: () => found,
  }
}

function detectType(kind: DocumentKind, start: string, outline: Outline): string | null {
  if (kind === 'text') return outline.sound ? 'application/json' : 'text/plain; charset=utf-8'
  // A provenance artifact can be the public key that its signature is verified with.
  if (kind === 'provenance' && start.startsWith(PEM)) return 'application/x-pem-file'
  if (kind === 'sbom') {
    if (start.startsWith(SPDX)) return 'text/spdx; charset=utf-8'
    if (isCycloneDxXml(start)) return 'application/vnd.cyclonedx+xml'
  }
  if (!outline.sound) return null
  const type = attestationType(outline) ?? TYPES[kind](outline)
  if (type === null || (outline.values === 1 && !outline.list)) return type
  return outline.list ? 'application/json' : 'application/jsonl' // several documents
}

/** Detects a document of a kind; any kind can also be sent in an attestation. */
const TYPES: Readonly<Record<DocumentKind, (outline: Outline) => string | null>> = {
  sbom: sbomType,
  vex: vexType,
  provenance: wrapperType,
  text: () => null,
}

/** Returns whether a JSON object is itself a document of a kind, by what it contains and not by one name alone. */
export function isDocumentValue(kind: DocumentKind, value: Fields): boolean {
  const outline: Outline = { sound: true, members: textsOf(value), values: 1, list: false }
  if (attestationType(outline) !== null) return true
  if (TYPES[kind](outline) === null) return false
  if (kind === 'vex' && isCsafByName(outline)) return isCsaf(value)
  return kind !== 'provenance' || hasAttestation(value)
}

function textsOf(value: Fields): Outline['members'] {
  const members = Object.entries(value)
  return new Map(members.map(([name, inner]) => [name, typeof inner === 'string' ? inner : null]))
}

function isCsafByName({ members }: Outline): boolean {
  return members.get('bomFormat') === undefined && members.get('@context') === undefined
}

/** Members that only the header of a CSAF document has. */
const OF_CSAF = ['csaf_version', 'tracking', 'publisher', 'category']

function isCsaf({ document, item }: Fields): boolean {
  if (isObject(item)) return isCsaf(item)
  return isObject(document) && OF_CSAF.some((name) => name in document)
}

/** Nesting down to which an attestation is looked for. */
const MAX_DEPTH = 32

/** Returns whether an attestation, or what a build service says of one, is anywhere within a value. */
function hasAttestation(value: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(value)) return value.some((inner) => hasAttestation(inner, depth + 1))
  if (!isObject(value)) return false
  const outline: Outline = { sound: true, members: textsOf(value), values: 1, list: false }
  if (attestationType(outline) !== null) return true
  if ('predicateType' in value || 'envelope' in value) return true
  return Object.values(value).some((inner) => hasAttestation(inner, depth + 1))
}

const PEM = '-----BEGIN '
const SPDX = 'SPDXVersion:'

function isCycloneDxXml(start: string): boolean {
  return /^<\?xml|^<bom\b/.test(start) && start.includes('cyclonedx.org')
}

/** Returns whether a CycloneDX document in XML ends with its end tag; comments may follow. */
function hasEndTag(tail: Buffer): boolean {
  const text = tail
    .toString('utf8')
    .replace(/<!--(?:(?!-->)[^])*-->/g, '')
    .trimEnd()
  return /<\/(?:[\w.-]+:)?bom\s*>$|<(?:[\w.-]+:)?bom\b[^>]*\/>$/.test(text)
}

function formOf(start: string, { sound, values }: Outline, hasNul: boolean): DocumentForm {
  if (sound) return values > 1 ? 'lines' : 'json'
  if (start.startsWith(PEM)) return 'pem'
  if (/^<(?:\?xml\b|!--|!doctype\b|[a-z_][\w:.-]*[\s/>])/i.test(start)) return 'xml'
  return hasNul ? 'binary' : 'text'
}

/** Returns the format of a document, independent of the requested kind. */
function formatOf(start: string, outline: Outline): DocumentFormat | null {
  if (start.startsWith(SPDX)) return 'spdx'
  if (isCycloneDxXml(start)) return 'cyclonedx'
  if (!outline.sound) return null
  if ((attestationType(outline) ?? wrapperType(outline)) !== null) return 'attestation'
  const type = sbomType(outline)
  if (type !== null) return type.includes('spdx') ? 'spdx' : 'cyclonedx'
  if (vexType(outline) === null) return null
  return isOpenVex(membersOf(outline)) ? 'openvex' : 'csaf'
}

function membersOf({ members }: Outline): Members {
  return (name) => members.get(name)
}

/** Detects an in-toto statement, or an envelope or bundle around one; any kind of document can be sent in one. */
function attestationType(outline: Outline): string | null {
  const members = membersOf(outline)
  if (isStatement(members)) return 'application/vnd.in-toto+json'
  return isEnvelope(members) || isBundle(members) ? 'application/json' : null
}

function sbomType(outline: Outline): string | null {
  const members = membersOf(outline)
  if (isCycloneDx(members)) return 'application/vnd.cyclonedx+json'
  return isSpdx2(members) || isSpdx3(members) ? 'application/spdx+json' : null
}

function vexType(outline: Outline): string | null {
  const members = membersOf(outline)
  if (isOpenVex(members)) return 'application/json'
  if (isCycloneDx(members)) return 'application/vnd.cyclonedx+json'
  return hasCsafHeader(members) || isCsafItem(members) ? 'application/json' : null
}

/** Detects the wrapper that registries and build services put around provenance. */
function wrapperType({ members }: Outline): string | null {
  const wrapped = members.has('provenance_summary') || members.has('attestations')
  return wrapped ? 'application/json' : null
}
